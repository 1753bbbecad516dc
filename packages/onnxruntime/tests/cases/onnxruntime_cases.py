"""`dlpack_web_onnxruntime` over the real onnxruntime-web."""

import sys

import numpy as np
import pytest
from gpu_world import run
from onnx_models import (
    cast_to,
    doubling,
    graph,
    message,
    node,
    number,
    one_node,
    text,
)

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

STATE = ort.capi.onnxruntime_pybind11_state
CPU = ["CPUExecutionProvider"]
GPU = ["WebGPUExecutionProvider"]


@pytest.fixture(params=[CPU, GPU], ids=["cpu", "gpu"])
def providers(request):
    return request.param


def session(model, providers=CPU, **more):
    return ort.InferenceSession(model, providers=providers, **more)


# --- what there is ------------------------------------------------------------------------


def test_what_there_is():
    assert ort.get_available_providers() == [
        "WebGPUExecutionProvider",
        "WasmExecutionProvider",
        "CPUExecutionProvider",
    ]
    assert ort.get_device() == "WEBGPU"
    run(ort.load())
    assert ort.__version__ >= "1.2"
    with pytest.raises(RuntimeError, match="already loaded"):
        run(ort.load("/elsewhere.mjs"))
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = ort.nope


def forget():
    for name in list(sys.modules):
        if name.split(".")[0] == "onnxruntime":
            del sys.modules[name]


def test_only_install_makes_it_onnxruntime():
    forget()  # an example installs it, too
    with pytest.raises(ModuleNotFoundError):
        import onnxruntime
    ort.install()
    ort.install()
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    assert onnxruntime is ort
    assert InvalidArgument is STATE.InvalidArgument
    forget()


def test_facts(providers):
    s = session(one_node("Add", shape=("N", 3), inputs=("a", "b")), providers)
    assert s.get_inputs() == [
        ("a", "tensor(float)", ["N", 3]),
        ("b", "tensor(float)", ["N", 3]),
    ]
    (y,) = s.get_outputs()
    assert (y.name, y.type, y.shape) == ("y", "tensor(float)", ["N", 3])
    assert s.get_providers()[0] == providers[0]
    assert s.get_modelmeta().producer_name == "dlpack-web"
    assert s.get_modelmeta().custom_metadata_map == {"made": "by hand"}
    assert s.get_provider_options()[providers[0]] == {}


# --- runs -----------------------------------------------------------------------------------


def test_arrays_in_and_out(providers):
    s = session(one_node("Sub", inputs=("a", "b")), providers)
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    (y,) = s.run(None, {"a": a, "b": a[::-1]})
    assert isinstance(y, np.ndarray)
    assert y.flags.writeable
    assert (y == a - a[::-1]).all()
    (y,) = s.run(["y"], {"b": a.tolist(), "a": dlw.from_dlpack(a)})
    assert not y.any()
    (y, again) = s.run(["y", "y"], {"a": a, "b": 0 * a})
    assert (y == a).all()
    assert (again == a).all()


def test_large_arrays(providers):
    s = session(doubling(), providers)
    x = np.arange(1 << 17, dtype=np.float32)
    assert (s.run(None, {"x": x})[0] == 2 * x).all()
    assert (s.run(None, {"x": x[::-2]})[0] == 2 * x[::-2]).all()


def test_nothing_and_scalars(providers):
    s = session(doubling(), providers)
    assert s.run(None, {"x": np.zeros(0, np.float32)})[0].shape == (0,)
    s = session(doubling(shape=()), providers)
    (y,) = s.run(None, {"x": np.array(3, np.float32)})
    assert (y.shape, float(y)) == ((), 6)


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "float16",
        "float64",
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
    ],
)
def test_every_dtype(dtype, providers):
    s = session(one_node("Identity", dtype), providers)
    x = np.arange(6).reshape(2, 3).astype(dtype)
    (y,) = s.run(None, {"x": x})
    assert y.dtype == x.dtype
    assert (y == x).all()


def test_strings(providers):
    s = session(one_node("Identity", "string"), providers)
    x = np.array([["a", "", "ünicode 🙂"], ["d", "e", "f"]])
    (y,) = s.run(None, {"x": x})
    assert y.dtype == object
    assert (y == x).all()
    (v,) = s.run_with_ort_values(None, {"x": ort.OrtValue(y)})
    assert v.data_type() == "tensor(string)"


def test_several_outputs_of_which_one_is_not_for_gpus(providers):
    nodes = [node("Add", ("x", "x"), ("y",)), node("Identity", ("w",), ("z",))]
    inputs = [("x", "float32", ("N",)), ("w", "float64", ("M",))]
    outputs = [("y", "float32", ("N",)), ("z", "float64", ("M",))]
    s = session(graph(nodes, inputs, outputs), providers)
    x, w = np.arange(3, dtype=np.float32), np.arange(5.0)
    z, y = s.run(["z", "y"], {"x": x, "w": w})
    assert (y == 2 * x).all()
    assert (z == w).all()
    assert z.dtype == np.float64


async def test_async():
    s = await ort.InferenceSession.create(doubling(), providers=GPU)
    x = np.arange(3, dtype=np.float32)
    runs = [s.run_async(None, {"x": x + i}) for i in range(5)]
    for i, each in enumerate(runs):
        (y,) = await each
        assert (y == 2 * (x + i)).all()
    told = []
    await s.run_async(None, {"x": x}, lambda *what: told.append(what), "mine")
    ((results, mine, error),) = told
    assert (results[0] == 2 * x).all()
    assert (mine, error) == ("mine", "")


async def test_a_callback_hears_of_errors():
    s = await ort.InferenceSession.create(doubling(), providers=GPU)
    told = []
    await s.run_async(None, {"x": np.arange(2.0)}, lambda *what: told.append(what))
    ((results, _, error),) = told
    assert results == []
    assert error.startswith("Unexpected input data type. Actual: (tensor(double))")
    with pytest.raises(ValueError, match="Required inputs"):
        s.run_async(None, {}, print)


# --- what NumPy's default integer is here ---------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_are_widened_where_the_model_wants_that(dtype, providers):
    s = session(one_node("Identity", dtype, ("N",)), providers)
    narrow = np.array([1, 2, 2**31 - 1], dtype.replace("64", "32"))
    for given in (narrow, dlw.from_dlpack(narrow), ort.OrtValue.from_dlpack(narrow)):
        (y,) = s.run(None, {"x": given})
        assert (y.dtype, y.tolist()) == (np.dtype(dtype), [1, 2, 2**31 - 1])
    if dtype == "int64":
        assert s.run(None, {"x": np.array([-1, -(2**31)])})[0].tolist() == [
            -1,
            -(2**31),
        ]
    (y,) = s.run(None, {"x": narrow[::-2]})
    assert y.tolist() == [2**31 - 1, 1]
    assert s.run(None, {"x": narrow[:0]})[0].shape == (0,)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *(("int32", each) for each in ("float32", "int8", "uint64", "bool", "string")),
        ("int16", "int64"),
        ("uint32", "int64"),
        ("bool", "int64"),
        ("float64", "float32"),
        ("float64", "int64"),
        ("int64", "int32"),
    ],
)
def test_nothing_else_is_converted(given, wanted, providers):
    s = session(one_node("Identity", wanted, ("N",)), providers)
    with pytest.raises(STATE.InvalidArgument, match="Unexpected input data type"):
        s.run(None, {"x": np.ones(3, given)})


def test_integers_on_the_gpu_are_not_widened():
    s = session(one_node("Identity", "int64", ("N",)), GPU)
    with (
        dlw.from_dlpack(np.ones(3, np.int32), device=s.device) as x,
        pytest.raises(STATE.InvalidArgument, match="Unexpected input data type"),
    ):
        s.run(None, {"x": x})


# --- what the model says ----------------------------------------------------------------------


def test_extents_without_names(providers):
    s = session(one_node("Add", shape=("", -1, 3), inputs=("x", "x")), providers)
    assert s.get_inputs()[0].shape == [None, None, 3]
    assert s.get_outputs()[0].shape == [None, None, 3]
    for shape in ((2, 2, 3), (1, 5, 3), (0, 1, 3)):
        assert s.run(None, {"x": np.ones(shape, np.float32)})[0].shape == shape
    with pytest.raises(STATE.InvalidArgument, match="index: 2 Got: 4 Expected: 3"):
        s.run(None, {"x": np.ones((1, 1, 4), np.float32)})


def overridable():
    values = message(9, np.float32([1, 2, 3]).tobytes())
    tensor = number(1, 3) + number(2, 1) + text(8, "b") + values
    nodes = [node("Add", ("x", "b"), ("y",))]
    inputs = [("x", "float32", ("N", 3)), ("b", "float32", (3,))]
    return graph(nodes, inputs, [("y", "float32", ("N", 3))], tensor)


def test_values_of_the_model_are_replaced(providers):
    s = session(overridable(), providers)
    assert s.get_overridable_initializers() == [("b", "tensor(float)", [3])]
    assert [each.name for each in s.get_inputs()] == ["x"]
    x, b = np.zeros((1, 3), np.float32), np.float32([7, 8, 9])
    for i in range(3):
        assert s.run(None, {"x": x + i})[0].tolist() == [[1 + i, 2 + i, 3 + i]]
        (y,) = s.run(None, {"b": b + i, "x": x})
        assert y.tolist() == [[7 + i, 8 + i, 9 + i]]
    with pytest.raises(STATE.InvalidArgument, match="input: b for the following"):
        s.run(None, {"x": x, "b": b[:2]})
    with pytest.raises(ValueError, match=r"Required inputs \(\['x'\]\) are missing"):
        s.run(None, {"b": b})
    s.release()
    with pytest.raises(dlw.ReleasedError):
        s.run(None, {"x": x, "b": b})


async def test_values_are_replaced_by_several_runs_at_once(providers):
    s = await ort.InferenceSession.create(overridable(), providers=providers)
    x, b = np.zeros((1, 3), np.float32), np.float32([7, 8, 9])
    feeds = [{"x": x}, {"x": x, "b": b}, {"x": x}, {"x": x, "b": 2 * b}]
    runs = [s.run_async(None, each) for each in feeds]
    found = [(await each)[0][0].tolist() for each in runs]
    assert found == [[1, 2, 3], [7, 8, 9], [1, 2, 3], [14, 16, 18]]


def of_type(name, *parts):
    return text(1, name) + message(2, *parts)


def zip_map(*labels, domain="ai.onnx.ml"):
    """The last node of a classifier, as skl2onnx writes it."""
    key = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    values = (
        text(9, label) if isinstance(label, str) else number(8, label % 2**64)
        for label in labels
    )
    kind = number(20, 8 if isinstance(labels[0], str) else 7)
    zipped = node(
        "ZipMap",
        ("x",),
        ("p",),
        text(1, key) + b"".join(values) + kind,
        domain="ai.onnx.ml",
    )
    tensor = message(1, number(1, 1), message(2, message(1), message(1, number(1, 2))))
    keys = number(1, 8 if isinstance(labels[0], str) else 7)
    maps = message(
        4, message(1, message(5, keys, message(2, message(1, number(1, 1)))))
    )
    inner = message(1, zipped) + text(2, "graph")
    inner += message(11, of_type("x", tensor)) + message(12, of_type("p", maps))
    opset = message(8, text(1, domain) + number(2, 1))
    return number(1, 8) + message(7, inner) + opset


@pytest.mark.parametrize("labels", [("a", "ü"), (-1, 2**40)])
def test_lists_of_dicts(labels, providers):
    s = session(zip_map(*labels), providers)
    key = "string" if isinstance(labels[0], str) else "int64"
    assert s.get_outputs() == [("p", f"seq(map({key},tensor(float)))", [])]
    rows = np.float32([[0.25, 0.75], [1, 0]])
    (found,) = s.run(None, {"x": rows})
    assert found == [dict(zip(labels, row, strict=True)) for row in rows.tolist()]
    assert {type(key) for row in found for key in row} <= {int, str}
    assert s.run(["p", "p"], {"x": rows[:0]}) == [[], []]
    value = ort.OrtValue.ortvalue_from_numpy(rows)
    with pytest.raises(STATE.NotImplemented, match=r"use run\(\)"):
        s.run_with_ort_values(None, {"x": value})


# --- builds -----------------------------------------------------------------------------------


CASTS = graph(
    [node("Cast", ("x",), ("y",), cast_to("float64"))],
    [("x", "float32", ("N",))],
    [("y", "float64", ("N",))],
)


def test_the_build_for_the_cpu_has_what_the_other_lacks():
    s = session(CASTS, CPU)
    (y,) = s.run(None, {"x": np.float32([1, 2])})
    assert (y.dtype, y.tolist()) == (np.float64, [1, 2])


def test_what_a_build_lacks_is_said_with_what_helps():
    with pytest.raises(
        (STATE.NotImplemented, STATE.Fail),
        match=r"providers=\['CPUExecutionProvider'\]",
    ):
        session(CASTS, GPU)
    with pytest.warns(UserWarning, match="runs on .* not on WebGPU: "):
        s = session(CASTS, [*GPU, *CPU])
    assert s.get_providers() == CPU
    assert s.device is None
    assert s.run(None, {"x": np.float32([1, 2])})[0].dtype == np.float64


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_what_a_build_lacks_of_small_floats_within_a_model(dtype):
    nodes = [
        node("Cast", ("x",), ("small",), cast_to(dtype)),
        node("Cast", ("small",), ("y",), cast_to("float32")),
    ]
    model = graph(nodes, [("x", "float32", ("N",))], [("y", "float32", ("N",))])
    with pytest.raises(
        (STATE.NotImplemented, STATE.Fail),
        match=r"providers=\['CPUExecutionProvider'\]",
    ):
        session(model, GPU)
    with pytest.warns(UserWarning, match="runs on .* not on WebGPU: "):
        s = session(model, [*GPU, *CPU])
    assert s.run(None, {"x": np.float32([1.5, 257])})[0].tolist() == [1.5, 256]


def test_providers_are_set_later():
    s = session(doubling(), GPU)
    x = np.arange(3, dtype=np.float32)
    s.set_providers(CPU)
    assert (s.get_providers(), s.device) == (CPU, None)
    assert (s.run(None, {"x": x})[0] == 2 * x).all()
    with pytest.raises(ValueError, match="either strings or"):
        s.set_providers([5])
    assert s.get_providers() == CPU
    assert (s.run(None, {"x": x})[0] == 2 * x).all()
