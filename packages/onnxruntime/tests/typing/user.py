"""A user's program as `mypy --strict` sees it; nothing runs this."""

from typing import Any, assert_type

import numpy as np

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

Array = np.ndarray[Any, Any]


async def sessions(a: Array, t: dlw.Tensor) -> None:
    session = ort.InferenceSession(b"", providers=["WebGPUExecutionProvider"])
    assert_type(session.run(None, {"x": a, "t": t}), list[Array])
    assert_type(await session.run_async(["y"], {"x": a}), list[Array])
    assert_type(await ort.InferenceSession.create("m.onnx"), ort.InferenceSession)
    assert_type(session.get_inputs()[0].shape, list[int | str | None])
    value = ort.OrtValue.ortvalue_from_numpy(a, "webgpu")
    assert_type(session.run_with_ort_values(None, {"x": value}), list[ort.OrtValue])
    assert_type(value.tensor, dlw.Tensor)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "webgpu")
    session.run_with_iobinding(binding)
    assert_type(binding.copy_outputs_to_cpu(), list[Array])
    await ort.load("ort.mjs")
    ort.install()
