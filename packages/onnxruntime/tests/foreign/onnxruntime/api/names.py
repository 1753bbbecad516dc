"""Names of inputs, outputs and values that mean something in JavaScript."""

import sys

import numpy as np
import onnxruntime as ort
from checks import check

NAMES = [
    "constructor",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "__proto__",
    "then",
    "0",
    "1e3",
    " ",
    "length",
    "dispose",
    "\ufeffx",
    "a.b/c:0",
    "é\U0001f600",
]
P = sys.argv[1:]
indices, outside = np.array([0, 2], np.int64), np.array([0, 3], np.int64)
added = np.array([1, 2], np.float32)

for i, name in enumerate(NAMES):
    says = ascii(name)

    def session():
        return ort.InferenceSession(f"names_{i}.onnx", providers=P)

    def slots():
        s = session()
        found = s.get_inputs() + s.get_outputs() + s.get_overridable_initializers()
        return [(each.name, each.type, each.shape) for each in found]

    check(f"{says}: slots", slots)
    if name == "__proto__":
        continue  # a page refuses the model
    check(f"{says}: run", lambda: session().run(None, {name: indices}))
    check(f"{says}: by name", lambda: session().run([f"{name}="], {name: indices}))
    check(
        f"{says}: replaced",
        lambda: session().run(None, {name: indices, f"{name}+": added}),
    )
    check(
        f"{says}: not replaced",
        lambda: session().run(None, {name: indices, f"{name}+": None}),
    )
    check(f"{says}: outside", lambda: session().run(None, {name: outside}))
    check(f"{says}: another name", lambda: session().run(None, {f"{name}0": indices}))

s = ort.InferenceSession("overridable.onnx", providers=P)
x = np.ones((2, 3), np.float32)
check("None for a default", lambda: s.run(None, {"x": x, "b": None}))
check("None for an input", lambda: s.run(None, {"x": None}))
check("None for no input", lambda: s.run(None, {"x": x, "q": None}))
check("a default and None", lambda: s.run(None, {"b": x[0], "x": None}))
check("replaced after None", lambda: s.run(None, {"x": x, "b": x[0]}))
