"""Blur: a Gaussian along x, then along y, with weights from NumPy."""

import numpy as np
from live import slider

import dlpack_web as dlw

sigma = slider("sigma", 0.5, 6, 2.5)

PASS = """
@group(0) @binding(0) var<storage, read> src: array<vec4f>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> dst: array<vec4f>;
@group(0) @binding(3) var<uniform> width: u32;
@group(0) @binding(4) var<uniform> along_y: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&dst)) { return; }
  let size = vec2i(i32(width), i32(arrayLength(&src) / width));
  let at = vec2i(i32(id.x % width), i32(id.x / width));
  let step = select(vec2i(1, 0), vec2i(0, 1), along_y == 1);
  let radius = i32(arrayLength(&weights)) / 2;
  var sum = vec4f();
  for (var k = -radius; k <= radius; k++) {
    let near = clamp(at + k * step, vec2i(), size - 1);
    sum += weights[k + radius] * src[near.y * size.x + near.x];
  }
  dst[id.x] = sum;
}
"""
blur = dlw.webgpu.Kernel(PASS)
kept = {}


def weights_of(sigma, device):
    """Uploaded once for each sigma."""
    if kept.get("sigma") != sigma:
        at = np.arange(-round(3 * sigma), round(3 * sigma) + 1)
        w = np.exp(-0.5 * (at / sigma) ** 2)
        w = (w / w.sum()).astype(np.float32)
        kept.update(sigma=sigma, weights=dlw.from_dlpack(w, device=device))
    return kept["weights"]


def frame(image, result):
    weights = weights_of(sigma.value, image.device)
    width = image.shape[1]
    if kept.get("shape") != image.shape:
        half = dlw.empty(image.shape, device=image.device)
        kept.update(shape=image.shape, half=half)
    blur(image, weights, kept["half"], width, 0)
    blur(kept["half"], weights, result, width, 1)
