"""Strings in and out of models, as text pipelines have them."""

import numpy as np
import onnxruntime as rt
from checks import check

providers = ["CPUExecutionProvider"]
labels = rt.InferenceSession("labels.onnx", providers=providers)
same = rt.InferenceSession("same_string.onnx", providers=providers)
check(
    "types",
    [(a.name, a.type, a.shape) for a in labels.get_inputs() + labels.get_outputs()],
)


def coded(words):
    return labels.run(None, {"words": words})


check("an array of str", lambda: coded(np.array(["red", "blue", "green"])))
check(
    "an array of objects",
    lambda: coded(np.array(["red", "blue", "pink"], dtype=object)),
)
# S5: the desktop reads past the end of elements that fill their bytes.
check("an array of bytes", lambda: coded(np.array([b"red", b"blue"], dtype="S5")))
check("a list", lambda: coded(["red", "blue"]))
check("a list of lists", lambda: coded([["red"], ["blue"]]))
check("none", lambda: coded(np.array([], dtype=object)))
check("a plain string", lambda: coded("red"))
check("numbers", lambda: coded(np.array([1.0, 2.0], dtype=np.float32)))
check("numbers as objects", lambda: coded(np.array([1, 2], dtype=object)))
check("None among objects", lambda: coded(np.array(["red", None], dtype=object)))
check("dtype of the output", lambda: str(coded(np.array(["red"]))[1].dtype))
check("shape of the output", lambda: coded(np.array(["red"]))[1].shape)
check("one name", lambda: labels.run(["again"], {"words": np.array(["red"])}))


def given(words):
    return same.run(None, {"x": words})[0]


for label, text in {
    "umlauts": "Größe",
    "Chinese": "你好",
    "emoji": "👍🏽",
    "spaces": "  a b ",
    "nothing": "",
    "lines": "a\nb\tc",
    "long": "x" * 10000,
    "quotes": "'\"\\",
}.items():
    check(f"text: {label}", lambda: given(np.array([text], dtype=object)).tolist())
    check(f"text as str: {label}", lambda: given(np.array([text])).tolist())
check("two axes", lambda: given(np.array([["a", "b"], ["c", "d"]])))
check("transposed", lambda: given(np.array([["a", "b"], ["c", "d"]]).T).tolist())
check("strided", lambda: given(np.array(list("abcdef"))[::2]).tolist())
check("no shape", lambda: given(np.array("a")).tolist())
check(
    "StringDType",
    lambda: given(np.array(["a", "b"], dtype=np.dtypes.StringDType())).tolist(),
)
check(
    "in a binding",
    lambda: same.io_binding().bind_cpu_input("x", np.array(["a"], dtype=object)),
)


# NUL: the desktop keeps it in lists and objects, and cuts str and bytes there.
for label, nul in {
    "list": ["a\0b"],
    "nested list": [["a"], ["\0"]],
    "objects": np.array(["a", "a\0"], object),
    "str": np.array(["a\0b"]),
    "bytes": np.array([b"a\0b"]),
    "subclass": [np.str_("a\0b")],
}.items():
    check(f"NUL: {label}", lambda: given(nul))
for label, lone in {
    "list": ["a", "\ud800"],
    "nested list": [["a"], ["\udfff"]],
    "objects": np.array(["x\udc00"], object),
    "str": np.array(["\ud83d\ude00"]),
    "bytes": np.array([b"\xed\xa0\x80"]),
}.items():
    check(f"lone surrogate: {label}", lambda: given(lone))
for label, leaves in {
    "numbers": [1, 2.5, True, None],
    "bytes": [b"a", "b"],
    "arrays": [np.array(["a", "b"]), np.array(["c", "d"])],
    "tuples": [("a", "b"), ("c", "d")],
    "empty": [],
    "of empty": [[], []],
    "empty texts": ["", ""],
}.items():
    check(f"list: {label}", lambda: given(leaves))
    check(f"objects: {label}", lambda: given(np.array(leaves, object)))
check("tuple", lambda: given(("a", "b")))
check("iterator", lambda: given(iter(["a"])))
check("number", lambda: given(5))
check("dict", lambda: given({"a": 1}))

# Strings of the model.
for name in ("inner", "plain", "bytes"):
    model = f"constant_{name}.onnx"
    check(f"constant: {name}", lambda: rt.InferenceSession(model).run(["text"], {}))
    check(f"no constant: {name}", lambda: rt.InferenceSession(model).run(["one"], {}))
