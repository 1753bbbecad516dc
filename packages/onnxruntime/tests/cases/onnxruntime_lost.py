"""Sessions whose device is lost, and memory that is full: in a page of its own."""

import numpy as np
import pytest
from gpu_world import destroy, run
from onnx_models import doubling, graph, node

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

STATE = ort.capi.onnxruntime_pybind11_state
X = np.arange(3, dtype=np.float32)


def expanding():
    """`y = Expand(x, shape)`: as large as one says."""
    return graph(
        [node("Expand", ("x", "shape"), ("y",))],
        [("x", "float32", ("N",)), ("shape", "int64", ("R",))],
        [("y", "float32", ("A", "B"))],
    )


@pytest.mark.parametrize(
    "providers", [["WasmExecutionProvider"], ["WebGPUExecutionProvider"]]
)
def test_memory_that_is_full(providers):
    s = ort.InferenceSession(expanding(), providers=providers)
    small = {"x": X, "shape": np.int64([2, 3])}
    assert s.run(None, small)[0].tolist() == [[0, 1, 2]] * 2
    with pytest.raises((STATE.Fail, STATE.RuntimeException, STATE.EPFail)):
        s.run(None, {"x": X, "shape": np.int64([1 << 30, 3])})
    assert s.run(None, small)[0].tolist() == [[0, 1, 2]] * 2


def test_a_device_that_is_lost():
    run(dlw.webgpu.request_device())
    s = ort.InferenceSession(doubling(), providers=["WebGPUExecutionProvider"])
    device = s.device
    (y,) = s.run_with_ort_values(
        None, {"x": ort.OrtValue.ortvalue_from_numpy(X)}, device_type="webgpu"
    )
    run(destroy(device))
    with pytest.raises(STATE.EPFail, match=r"11 : EP_FAIL : .*lost"):
        s.run(None, {"x": X})
    with pytest.raises(dlw.DeviceLostError):
        s.run(None, {"x": X})
    with pytest.raises(dlw.DeviceLostError):
        y.numpy()
    on_cpu = ort.InferenceSession(doubling(), providers=["CPUExecutionProvider"])
    assert on_cpu.run(None, {"x": X})[0].tolist() == [0, 2, 4]
    run(dlw.webgpu.request_device())
    s = ort.InferenceSession(doubling(), providers=["WebGPUExecutionProvider"])
    assert s.device not in (None, device)
    assert s.run(None, {"x": X})[0].tolist() == [0, 2, 4]
