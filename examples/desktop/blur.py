"""A picture goes to the machine's GPU, is blurred there, and comes back.

pip install '../..[webgpu]' numpy; python blur.py
"""

import asyncio

import numpy as np

import dlpack_web as dlw

BLUR = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> width: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&y)) { return; }
  let column = id.x % width;
  let left = x[id.x - min(column, 1)];
  let right = x[id.x + min(width - 1 - column, 1)];
  y[id.x] = (left + x[id.x] + right) / 3;
}
"""


async def main() -> None:
    device = await dlw.webgpu.request_device()
    picture = np.zeros((4, 9), np.float32)
    picture[:, 4] = 9
    x = dlw.from_dlpack(picture, device=device)
    y = dlw.empty(x.shape, device=device)
    with x, y:
        dlw.webgpu.Kernel(BLUR)(x, y, picture.shape[1])
        print((await y.to_host())[0].tolist())


if __name__ == "__main__":
    asyncio.run(main())
