"""What a feed says beyond its bytes: masks, byte order, NUL, and NumPy's default integer, which has 32
bits here. What native onnxruntime answers is in tests/foreign/onnxruntime."""

import numpy as np
import pytest
from onnx_models import TYPES, graph, node, one_node

from dlpack_web import onnxruntime as ort

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
    *(run, run_with_ort_values, bind_cpu_input, bind_ortvalue_input),
    *(update_inplace, update_inplace_on_the_gpu, copy_tensors),
    *(ortvalue_from_numpy, with_onnx_type),
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
        make([1], each).data_type() for each in (int, "int", "f4", ">f4", bool)
    ] == [
        *("tensor(int64)", "tensor(int64)", "tensor(float)", "tensor(float)"),
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
