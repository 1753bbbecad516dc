"""What a feed says beyond its bytes: masks, byte order, NUL, and NumPy's default integer, which has 32
bits here. What native onnxruntime answers is in tests/foreign/onnxruntime."""

import re

import js
import numpy as np
import pytest
from gpu_world import run as wait
from js import harness
from onnx_models import TYPES, graph, message, node, number, one_node
from onnx_models import text as text_field
from pyodide.ffi import JsException, to_js

import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

CPU = ["CPUExecutionProvider"]
errors = ort.capi.onnxruntime_pybind11_state
value = ort.OrtValue.ortvalue_from_numpy
DTYPES = ["float32", "int16", "int64", "float64", "uint64"]


def identity(dtype):
    return ort.InferenceSession(one_node("Identity", dtype, ("N",)), providers=CPU)


def run(dtype, x):
    return identity(dtype).run(None, {"x": x})[0]


def run_with_ort_values(dtype, x):
    results = identity(dtype).run_with_ort_values(None, {"x": value(x)})
    return results[0].numpy()


def bind_cpu_input(dtype, x):
    session = identity(dtype)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0]


def bind_ortvalue_input(dtype, x):
    session = identity(dtype)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value(x))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0]


def update_inplace(dtype, x):
    target = value(np.zeros(x.shape, dtype))
    target.update_inplace(x)
    return target.numpy()


def update_inplace_on_the_gpu(dtype, x):
    target = value(np.zeros(x.shape, dtype), "webgpu")
    target.update_inplace(x)
    return target.numpy()


def copy_tensors(dtype, x):
    target = value(np.zeros(x.shape, dtype))
    ort.copy_tensors([value(x)], [target])
    return target.numpy()


def ortvalue_from_numpy(dtype, x):
    return value(x).numpy()


def with_onnx_type(dtype, x):
    make = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
    return make(x, TYPES[dtype]).numpy()


WAYS = [
    run,
    run_with_ort_values,
    bind_cpu_input,
    bind_ortvalue_input,
    update_inplace,
    update_inplace_on_the_gpu,
    copy_tensors,
    ortvalue_from_numpy,
    with_onnx_type,
]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


@every_way
@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_elements_are_refused(way, dtype):
    x = np.ma.array([1, 2, 3], dtype, mask=[0, 1, 0])
    with pytest.raises(
        (BufferError, errors.InvalidArgument, RuntimeError),
        match=r"1 elements .*\.filled\(value\).*\.data",
    ):
        way(dtype, x)
    assert way(dtype, x.filled(7).astype(dtype)).tolist() == [1, 7, 3]
    assert way(dtype, np.ma.array([1, 2, 3], dtype, mask=False)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, np.ma.masked],
        [np.ma.array([1.0, 2], mask=[0, 1]), [3.0, 4]],
        [[1.0, 2], (3.0, np.ma.masked)],
        [[np.ma.array(1.0, mask=True)]],
    ],
)
def test_masked_elements_in_lists_are_refused(values):
    with pytest.raises(errors.InvalidArgument, match=r"elements .* masked.*filled"):
        run("float32", values)


@pytest.mark.parametrize("kind", [object, "U1", "S1"])
def test_masked_strings_are_refused(kind):
    masked = np.ma.array(np.array(["a", "b"], kind), mask=[1, 0])
    with pytest.raises(errors.InvalidArgument, match=r"1 elements .* masked"):
        run("string", masked)
    with pytest.raises(errors.InvalidArgument, match=r"1 elements .* masked"):
        run("string", ort.OrtValue(masked))


@every_way
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["swapped", "misaligned", "strided", "backwards"])
def test_elements_of_every_layout(way, dtype, layout):
    x = np.array([1, 2, 300], dtype)
    given = {
        "swapped": x.astype(x.dtype.newbyteorder()),
        "misaligned": np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(dtype),
        "strided": np.repeat(x, 2)[::2],
        "backwards": x[::-1].copy()[::-1],
    }[layout]
    found = way(dtype, given)
    assert (found.dtype, found.tolist()) == (dtype, [1, 2, 300])


@pytest.mark.parametrize(
    "way",
    [each for each in WAYS if each is not ortvalue_from_numpy],
    ids=lambda way: way.__name__,
)
@pytest.mark.parametrize("sign", ["int64", "uint64"])
def test_default_integers_are_those_of_the_desktop(way, sign):
    x = np.arange(3) - 1 if sign == "int64" else np.arange(3).astype("uint")
    found = way(sign, x)
    assert (found.dtype, found.tolist()) == (sign, x.tolist())


def test_int_is_the_int_of_the_desktop():
    make = ort.OrtValue.ortvalue_from_shape_and_type
    assert [
        make([1], each).data_type()
        for each in (int, "int", np.dtype("i4"), np.int32, "f4", ">f4", bool)
    ] == [
        "tensor(int64)",
        "tensor(int64)",
        "tensor(int32)",
        "tensor(int32)",
        "tensor(float)",
        "tensor(float)",
        "tensor(bool)",
    ]


@pytest.mark.parametrize("text", ["\0", "a\0", "\0a", "a\0b", "é\0"])
def test_strings_with_nul_are_refused(text):
    for strings in (
        [text],
        ["a", text],
        [["a"], [text]],
        np.array(["a", text], object),
        np.array([[text]], object),
        ort.OrtValue(np.array([text, "a"], object)),
        np.array([f"{text}|"]),
        np.array([f"{text}|".encode()]),
    ):
        with pytest.raises(
            errors.NotImplemented, match="input x has a string with NUL"
        ):
            run("string", strings)


@pytest.mark.parametrize("text", ["\ufeff" + "x" * 20, "a \ufeff"])
def test_strings_that_would_lose_a_mark_are_refused(text):
    """onnxruntime-web takes U+FEFF for a byte order mark where a result begins."""
    for strings in ([text], np.array([["a", text]]), ort.OrtValue(np.array([text]))):
        with pytest.raises(errors.NotImplemented, match=r"with U\+FEFF, .* of results"):
            run("string", strings)
    # Where no result is a string, it reads them right.
    pattern = text_field(1, "pattern") + text_field(4, "^\ufeffx*$") + number(20, 3)
    model = graph(
        [node("RegexFullMatch", ("x",), ("y",), pattern)],
        [("x", "string", ("N",))],
        [("y", "bool", ("N",))],
    )
    session = ort.InferenceSession(model, providers=CPU)
    (matches,) = session.run(None, {"x": [text, "x" * 20]})
    assert matches.tolist() == [text[0] == "\ufeff", False]


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("é" * 40, None),
        ("\U0001f600", None),
        ("a\0b", "NUL"),
        ("\ufeff" + "x" * 20, r"U\+FEFF"),
        (b"\xed\xa0\x80", "bytes that are not UTF-8"),  # a lone surrogate
        (b"a\xff", "bytes that are not UTF-8"),
    ],
)
def test_strings_of_the_model_are_returned_as_they_are_or_refused(text, flaw):
    value = message(4, text if isinstance(text, bytes) else text.encode())
    nodes = [
        node(
            "Constant",
            (),
            ("y",),
            text_field(1, "value_string") + value + number(20, 3),
        ),
        node("Identity", ("x",), ("z",)),
    ]
    outputs = [("y", "string", ()), ("z", "float32", (1,))]
    session = ort.InferenceSession(
        graph(nodes, [("x", "float32", (1,))], outputs), providers=CPU
    )
    feeds = {"x": np.float32([5])}
    assert session.run(["z"], feeds)[0] == [5]
    if flaw is None:
        assert session.run(["y"], feeds)[0] == text
    else:
        with pytest.raises(errors.NotImplemented, match=f"strings .* with {flaw}, "):
            session.run(None, feeds)


def test_strings_of_every_length():
    for unit in ("x", "é", "漢", "\U0001f600"):
        for lengths in (range(20), [*range(20)][::-1], [0], [0, 0], [1, 0], []):
            strings = np.array([unit * n for n in lengths], object)
            assert run("string", strings).tolist() == strings.tolist()


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\ud83d\ude00", "é\udc00b"])
def test_lone_surrogates_are_refused(text):
    for strings in ([text], ["a", text], [[text]], np.array([text], object)):
        with pytest.raises(
            UnicodeEncodeError, match="surrogates not allowed in input x"
        ):
            run("string", strings)
    with pytest.raises(errors.Fail, match="surrogates not allowed in input x"):
        run("string", np.array([text]))


def test_options_with_nul_are_refused():
    options = ort.SessionOptions()
    for set_it in (
        lambda text: options.add_session_config_entry(text, "1"),
        lambda text: options.add_session_config_entry("a", text),
        lambda text: options.add_free_dimension_override_by_name(text, 3),
        lambda text: setattr(options, "logid", text),
        lambda text: ort.RunOptions().add_run_config_entry(text, "1"),
    ):
        with pytest.raises(errors.NotImplemented, match="has a string with NUL"):
            set_it("a\0b")
        with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
            set_it("\ud800")


def test_messages_about_strings_are_short():
    with pytest.raises(errors.NotImplemented) as caught:
        run("string", ["x" * 100_000 + "\0"])
    assert len(str(caught.value)) < 400


def test_a_name_with_nul_does_not_reach_another_input():
    model = graph(
        [node("Sub", ("a", "a\0b"), ("y",))],
        [("a", "float32", (2,)), ("a\0b", "float32", (2,))],
        [("y", "float32", (2,))],
    )
    with pytest.raises(errors.NotImplemented, match=r'"a\\u0000b" \(NUL\).*rename it'):
        ort.InferenceSession(model, providers=CPU)


def test_a_name_that_would_lose_a_mark_does_not_reach_another_input():
    marked = "\ufeff" + "x" * 20
    inputs = [(name, "float32", (2,)) for name in (marked[1:], marked)]
    nodes = [node("Sub", (marked[1:], marked), ("y",))]
    model = graph(nodes, inputs, [("y", "float32", (2,))])
    with pytest.raises(errors.NotImplemented, match=r"\(U\+FEFF\) .*rename it"):
        ort.InferenceSession(model, providers=CPU)


# --- sequences, maps and optional values ----------------------------------------------------------

FLOATS = message(1, number(1, TYPES["float32"]))


def of(field, *inner):
    """A type of onnx.proto around others: 4 is a sequence, 5 a map, 9 an optional value."""
    return message(field, *inner)


SEQUENCE = of(4, message(1, FLOATS))
MAP = of(5, number(1, TYPES["int64"]), message(2, FLOATS))


def typed(op, given, returned, *attributes, domain="", inputs=("x",)):
    """`y = op(x)`, of these types, and `z = x` of a tensor."""
    takes = [("x", given), ("t", FLOATS)]
    gives = [("y", returned), ("z", FLOATS)]
    nodes = [
        node(op, inputs, ("y",), *attributes, domain=domain),
        node("Identity", ("t",), ("z",)),
    ]
    whole = message(
        7,
        *(message(1, each) for each in nodes),
        text_field(2, "graph"),
        *(message(11, text_field(1, name), message(2, kind)) for name, kind in takes),
        *(message(12, text_field(1, name), message(2, kind)) for name, kind in gives),
    )
    ml = message(8, text_field(1, "ai.onnx.ml"), number(2, 3))
    return number(1, 8) + whole + message(8, number(2, 17)) + ml


AXIS = text_field(1, "axis") + number(3, 0) + number(20, 2)
WITH_OUTPUTS = {
    "seq(tensor(float))": typed("SplitToSequence", FLOATS, SEQUENCE),
    "seq(tensor(float)) ": typed("SequenceConstruct", FLOATS, SEQUENCE),
}
WITH_INPUTS = {
    "seq(tensor(float))": typed("ConcatFromSequence", SEQUENCE, FLOATS, AXIS),
    "map(int64,tensor(float))": typed("CastMap", MAP, FLOATS, domain="ai.onnx.ml"),
}


@pytest.mark.parametrize("kind", WITH_OUTPUTS)
def test_outputs_that_are_sequences_are_refused(kind):
    session = ort.InferenceSession(WITH_OUTPUTS[kind], providers=CPU)
    assert session.get_outputs()[0] == ("y", kind.strip(), [])
    x = np.float32([1, 2])
    refused = f"output y is {re.escape(kind.strip())}, and onnxruntime-web returns only"
    with pytest.raises(errors.NotImplemented, match=refused):
        session.run(None, {"x": x, "t": x})
    (z,) = session.run(["z"], {"x": x, "t": x})  # it is computed, and left where it is
    assert z.tolist() == [1, 2]
    binding = session.io_binding()
    for name in ("x", "t"):
        binding.bind_cpu_input(name, x)
    binding.bind_output("y")
    with pytest.raises((errors.NotImplemented, RuntimeError), match=refused):
        session.run_with_iobinding(binding)


@pytest.mark.parametrize("kind", WITH_INPUTS)
@pytest.mark.parametrize(
    "given",
    [[np.float32([1])], {1: 2.0}, np.float32([1]), value(np.float32([1]))],
    ids=str,
)
def test_inputs_that_are_sequences_or_maps_are_refused(kind, given):
    session = ort.InferenceSession(WITH_INPUTS[kind], providers=CPU)
    assert session.get_inputs()[0] == ("x", kind, [])
    feeds = {"x": given, "t": np.float32([1])}
    refused = f"input x is {re.escape(kind)}, and onnxruntime-web takes only tensors"
    with pytest.raises(errors.NotImplemented, match=refused):
        session.run(["z"], feeds)


OPTIONAL = of(9, message(1, FLOATS))


def test_optional_outputs_are_arrays():
    model = typed("Optional", FLOATS, OPTIONAL)
    session, x = ort.InferenceSession(model, providers=CPU), np.float32([1, 2])
    assert session.get_outputs()[0] == ("y", "optional(tensor(float))", [])
    for each in session.run(None, {"x": x, "t": x}):
        assert each.tolist() == [1, 2]
    (y,) = session.run_with_ort_values(["y"], {"x": value(x), "t": value(x)})
    assert (y.data_type(), y.numpy().tolist()) == ("tensor(float)", [1, 2])
    binding = session.io_binding()
    for name in ("x", "t"):
        binding.bind_cpu_input(name, x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [1, 2]


def test_optional_strings_are_refused():
    strings = message(1, number(1, TYPES["string"]))
    model = typed("Optional", strings, of(9, message(1, strings)))
    session, t = ort.InferenceSession(model, providers=CPU), np.float32([1])
    assert session.get_outputs()[0].type == "optional(tensor(string))"
    with pytest.raises(errors.NotImplemented, match="returns only"):
        session.run(["y"], {"x": np.array(["a"]), "t": t})


@pytest.mark.parametrize(
    "given", [np.float32([1, 2]), [1, 2], value(np.float32([1]))], ids=str
)
def test_optional_inputs_take_arrays(given):
    model = typed("OptionalHasElement", OPTIONAL, message(1, number(1, TYPES["bool"])))
    session, t = ort.InferenceSession(model, providers=CPU), np.float32([1])
    assert session.get_inputs()[0] == ("x", "optional(tensor(float))", [])
    if isinstance(given, ort.OrtValue):
        t = value(t)
        (y,) = session.run_with_ort_values(["y"], {"x": given, "t": t})
        assert y.numpy()
    else:
        assert session.run(["y"], {"x": given, "t": t}) == [True]
    with pytest.raises(
        errors.InvalidArgument, match=r"Actual: .tensor.int64.. , expected: .tensor"
    ):
        session.run(["y"], {"x": np.int64([1]), "t": np.float32([1])})


def test_an_optional_output_without_a_value_is_an_error():
    """Native onnxruntime returns None; onnxruntime-web cannot say that."""
    kind = text_field(1, "type") + message(14, FLOATS) + number(20, 13)
    model = typed("Optional", FLOATS, OPTIONAL, kind, inputs=())
    session, x = ort.InferenceSession(model, providers=CPU), np.float32([1, 2])
    with pytest.raises(
        errors.InvalidArgument, match="must contain a constructed tensor"
    ):
        session.run(["y"], {"x": x, "t": x})
    assert session.run(["z"], {"x": x, "t": x})[0].tolist() == [1, 2]


def of_the_library(model, x):
    """What onnxruntime-web itself says: were it to carry them, we could."""
    library = wait(harness.load("/libraries/ort/ort.wasm.bundle.min.mjs"))
    session = wait(library.InferenceSession.create(to_js(model)))
    try:
        t = library.Tensor.new("float32", to_js(np.float32([1, 2])), to_js([2]))
        feeds = js.Object.fromEntries(
            to_js([["x", t if x is None else to_js(x)], ["t", t]])
        )
        return wait(session.run(feeds))
    finally:
        wait(session.release())


@pytest.mark.parametrize("model", WITH_OUTPUTS.values(), ids=list(WITH_OUTPUTS))
def test_the_library_returns_no_sequences(model):
    with pytest.raises(JsException, match="Reading data from non-tensor typed value"):
        of_the_library(model, None)


@pytest.mark.parametrize("model", WITH_INPUTS.values(), ids=list(WITH_INPUTS))
def test_the_library_takes_no_sequences_and_no_maps(model):
    with pytest.raises(
        JsException, match=r"expected to be of type: \d but received a t"
    ):
        of_the_library(model, None)
    for given in ([np.float32([1])], {1: 2.0}):
        with pytest.raises(JsException, match="invalid data location"):
            of_the_library(model, given)
