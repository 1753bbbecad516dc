"""`dlpack_web.onnxruntime` over the real onnxruntime-web."""

import sys

import numpy as np
import pytest
from gpu_world import run
from onnx_models import doubling, graph, node, one_node

import dlpack_web as dlw
from dlpack_web import onnxruntime as ort

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
    with pytest.raises(RuntimeError, match="loaded already"):
        run(ort.load("/elsewhere.mjs"))
    with pytest.raises(AttributeError, match="no attribute 'preload_dlls'"):
        _ = ort.preload_dlls


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
    (y,) = s.run(None, {"x": np.float32(3).reshape(())})
    assert (y.shape, float(y)) == ((), 6)


@pytest.mark.parametrize(
    "dtype",
    [
        *("float32", "float16", "float64", "bool", "int8", "uint8", "int16", "uint16"),
        *("int32", "uint32", "int64", "uint64"),
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
