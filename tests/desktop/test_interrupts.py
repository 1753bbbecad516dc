"""Interrupts on the desktop: wherever one comes, no tensor and no buffer under one is left.

About 15 places of each, because a kernel takes minutes; WHOLE=1 takes 120.
"""

import gc
import os

import numpy as np
import pytest
from gpu_world import live
from interrupting import Interrupt

import dlpack_web as dlw

pytestmark = [
    pytest.mark.usefixtures("device", "nothing_leaks"),
    # CPython reports a coroutine that an interrupt dropped before it began; as an error, the
    # report keeps the coroutine, and so its tensors.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]

ARRAY = np.arange(6, dtype="f4")
TRIPLE = """
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<uniform> factor: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&src)) { dst[id.x] = factor * src[id.x]; }
}
"""


def upload():
    with dlw.from_dlpack(ARRAY, device="webgpu") as tensor:
        return np.asarray(tensor)


def upload_strided():
    wide = np.repeat(ARRAY.astype("f8"), 2)[::2]
    with dlw.from_dlpack(wide) as tensor:
        on_gpu = tensor.to_device("webgpu", dtype="float32")
    return np.asarray(on_gpu)


def write():
    with dlw.empty(6, device="webgpu") as tensor:
        tensor.write(ARRAY)
        return np.asarray(tensor)


def kernel():
    x = dlw.from_dlpack(ARRAY / 3, device="webgpu")
    y = dlw.empty(6, device="webgpu")
    dlw.webgpu.Kernel(TRIPLE)(x, y, 3.0)
    return np.round(np.asarray(y))


def replay():
    x = dlw.from_dlpack(ARRAY / 9, device="webgpu")
    y = dlw.empty(6, device="webgpu")
    with dlw.webgpu.batch() as batch:
        dlw.webgpu.Kernel(TRIPLE)(x, y, 3.0)
    batch.update(0, {2: 9.0})
    batch.run()
    batch.release()
    return np.round(np.asarray(y))


def lend():
    with dlw.empty(1, device="webgpu") as tensor:
        gpu = tensor.device.gpu
    buffer = gpu.create_buffer(size=64, usage="STORAGE | COPY_SRC | COPY_DST")
    gpu.queue.write_buffer(buffer, 0, ARRAY)
    options = {"device": "webgpu", "release": lambda: None}
    return np.asarray(dlw.from_gpu_buffer(buffer, 6, "float32", **options))


@pytest.mark.parametrize(
    "operation",
    [upload, upload_strided, write, kernel, replay, lend],
    ids=lambda each: each.__name__,
)
def test_interrupted_anywhere(operation):
    assert (operation() == ARRAY).all()
    before = live()
    with Interrupt(0) as places:
        operation()
    assert places.count > 5
    step = places.count // (120 if os.environ.get("WHOLE") else 15) + 1
    for at in range(1, places.count + 1, step):
        with pytest.raises(KeyboardInterrupt), Interrupt(at):
            operation()
        gc.collect(0)
        assert (at, live()) == (at, before)
    assert (operation() == ARRAY).all()
