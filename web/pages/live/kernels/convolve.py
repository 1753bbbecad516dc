"""Convolution: any weights from NumPy, over any window."""

import numpy as np
from live import slider

import dlpack_web as dlw

amount = slider("amount", 0, 2, 1)

emboss = np.array(
    [
        [-1, -1, -1, -1, 0],
        [-1, -1, -1, 0, 1],
        [-1, -1, 1, 1, 1],
        [-1, 0, 1, 1, 1],
        [0, 1, 1, 1, 1],
    ],
    np.float32,
)
weights = dlw.from_dlpack(emboss / 3, device="webgpu")

convolve = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read> image: array<vec4f>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4f>;
@group(0) @binding(3) var<uniform> width: u32;
@group(0) @binding(4) var<uniform> side: u32;
@group(0) @binding(5) var<uniform> amount: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&result)) { return; }
  let size = vec2i(i32(width), i32(arrayLength(&image) / width));
  let at = vec2i(i32(id.x % width), i32(id.x / width));
  let half = i32(side) / 2;
  var sum = vec3f();
  for (var i = 0; i < i32(side * side); i++) {
    let near = clamp(at + vec2i(i % i32(side), i / i32(side)) - half, vec2i(), size - 1);
    sum += weights[i] * image[near.y * size.x + near.x].rgb;
  }
  result[id.x] = vec4f(mix(image[id.x].rgb, sum, amount), 1);
}
""")


def frame(image, result):
    convolve(image, weights, result, image.shape[1], weights.shape[0], amount.value)
