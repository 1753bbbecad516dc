"""The same with dlpack-web."""

import dlpack_web as dlw

WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
}
"""


async def start():
    device = await dlw.webgpu.request_device()
    return device, dlw.webgpu.Kernel(WGSL)


async def run(made, a):
    device, square = made
    x = dlw.from_dlpack(a, device=device)
    y = dlw.empty(a.shape, device=device)
    square(x, y)
    return await y.to_host()
