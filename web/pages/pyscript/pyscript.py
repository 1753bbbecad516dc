"""NumPy -> JavaScript -> WebGPU -> NumPy, in a page of PyScript or in its worker."""

import json

import numpy as np
from pyscript import RUNNING_IN_WORKER, document

import dlpack_web as dlw

SQUARE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
}
"""

steps = {}
a = np.arange(6, dtype=np.float32)
try:
    with dlw.from_dlpack(a) as tensor:
        tensor.js.data[4] = 40  # a Float32Array over NumPy's own bytes
        steps["JavaScript writes into the NumPy array"] = bool(a[4] == 40)
        device = await dlw.webgpu.request_device()
        x = tensor.to_device(device)
    y = dlw.empty(x.shape, device=device)
    dlw.webgpu.Kernel(SQUARE)(x, y)
    squares = await y.to_host()
    steps["a WGSL kernel squares it on the GPU"] = bool((squares == a * a).all())
    x.release()
    y.release()
    steps["every tensor was released"] = dlw.live_tensors() == 0
except Exception as error:
    steps[f"{type(error).__name__}: {error}"] = False
where = "in a worker" if RUNNING_IN_WORKER else "on the main thread"
steps[f"this ran {where}"] = dlw.features()["worker"] == RUNNING_IN_WORKER
document.querySelector("#steps").dataset.steps = json.dumps(steps)
