"""What the GPU finds wrong with a run, and with its inputs: the exception names the session."""

import asyncio
import re

import numpy as np
import pytest
from gpu_world import run
from onnx_models import cast_to, doubling, graph, node

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

STATE = ort.capi.onnxruntime_pybind11_state
GPU = ["WebGPUExecutionProvider"]
X = np.arange(4, dtype=np.float32)
# Firefox does not name what it cannot parse, and later only the pipeline.
WORDS = "f16|Parsing error|'Cast'"
BROKEN = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = spoilt; }"""


def casting():
    """`y = float32(sin(float16(x)))`: of no device that lacks shader-f16."""
    return graph(
        [
            node("Cast", ("x",), ("h",), cast_to("float16")),
            node("Sin", ("h",), ("g",)),
            node("Cast", ("g",), ("y",), cast_to("float32")),
        ],
        [("x", "float32", ("N",))],
        [("y", "float32", ("N",))],
    )


def session(model):
    s = ort.InferenceSession(model, providers=GPU)
    if "shader-f16" in list(s.device.gpu.features):
        pytest.skip("this device has shader-f16")
    return s


def test_float16_without_shader_f16():
    bad, good = session(casting()), session(doubling())
    value = ort.OrtValue.ortvalue_from_numpy(X)
    for _ in range(2):
        with pytest.raises((STATE.EPFail, STATE.Fail), match=WORDS) as raised:
            bad.run(None, {"x": X})
        if isinstance(raised.value, STATE.EPFail):  # of the older backend
            assert 'the session "graph" of onnxruntime-web failed on webgpu:' in str(
                raised.value
            )
        with pytest.raises((STATE.Fail, BufferError), match=WORDS):
            bad.run_with_ort_values(None, {"x": value}, device_type="webgpu")[0].numpy()
        assert good.run(None, {"x": X})[0].tolist() == [0, 2, 4, 6]


def test_runs_at_once_have_their_own_errors():
    bad, good = session(casting()), session(doubling())

    async def both():
        runs = [s.run_async(None, {"x": X}) for s in (good, bad, good, bad, good)]
        return await asyncio.gather(*runs, return_exceptions=True)

    first, second, third, fourth, fifth = run(both())
    for found in (first, third, fifth):
        assert found[0].tolist() == [0, 2, 4, 6]
    for found in (second, fourth):
        assert isinstance(found, (STATE.EPFail, STATE.Fail))
        assert re.search(WORDS, str(found))


def test_a_fault_of_an_input():
    s = session(doubling())
    kernel = dlw.webgpu.Kernel(BROKEN, label="spoilt")
    with dlw.from_dlpack(X, device=s.device) as x:
        kernel(x)
        for _ in range(2):  # it is pending, and then known
            with pytest.raises(dlw.KernelError, match="spoilt"):
                s.run(None, {"x": x})
        kernel(x)
        value = ort.OrtValue(x)
        with pytest.raises(dlw.KernelError, match="spoilt"):
            s.run_with_ort_values(None, {"x": value})[0].numpy()
        x.write(X)
        assert s.run(None, {"x": x})[0].tolist() == [0, 2, 4, 6]
