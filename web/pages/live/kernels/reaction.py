"""Reaction and diffusion (Gray-Scott) of two substances, whose amounts stay in tensors.

Where the picture is bright, more of the second substance is added.
"""

import numpy as np
from live import slider

import dlpack_web as dlw

feed = slider("feed", 0.02, 0.07, 0.037)
kill = slider("kill", 0.05, 0.07, 0.06)
stir = slider("stir", 0, 0.02, 0.004)

STEPS = 8  # of the reaction, in each frame

react = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read> before: array<vec2f>;
@group(0) @binding(1) var<storage, read_write> after: array<vec2f>;
@group(0) @binding(2) var<storage, read> image: array<vec4f>;
@group(0) @binding(3) var<uniform> width: u32;
@group(0) @binding(4) var<uniform> feed: f32;
@group(0) @binding(5) var<uniform> kill: f32;
@group(0) @binding(6) var<uniform> stir: f32;

fn at(x: u32, y: u32) -> vec2f {
  let height = arrayLength(&before) / width;
  return before[(y % height) * width + x % width];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&after)) { return; }
  let height = arrayLength(&before) / width;
  let x = id.x % width + width;
  let y = id.x / width + height;
  let here = before[id.x];
  let spread = 0.2 * (at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1))
    + 0.05 * (at(x - 1, y - 1) + at(x + 1, y - 1) + at(x - 1, y + 1) + at(x + 1, y + 1))
    - here;
  let light = dot(image[id.x].rgb, vec3f(0.2126, 0.7152, 0.0722));
  let made = here.x * here.y * here.y;
  let rate = vec2f(
    spread.x - made + feed * (1 - here.x),
    0.5 * spread.y + made - (kill + feed) * here.y + stir * light * light,
  );
  after[id.x] = clamp(here + rate, vec2f(), vec2f(1));
}
""")

show = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read> amounts: array<vec2f>;
@group(0) @binding(1) var<storage, read> image: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&result)) { return; }
  let v = saturate(3 * amounts[id.x].y);
  let dish = mix(vec3f(0.03, 0.08, 0.12), vec3f(0.35, 0.95, 0.85), v);
  result[id.x] = vec4f(mix(dish, image[id.x].rgb, 0.15), 1);
}
""")

state = []


def frame(image, result):
    height, width, _ = image.shape
    if not state or state[0].shape[:2] != (height, width):
        start = np.zeros((height, width, 2), np.float32)
        start[..., 0] = 1
        state[:] = [dlw.from_dlpack(start, device=image.device) for _ in "ab"]
    for _ in range(STEPS):
        before, after = state
        react(before, after, image, width, feed.value, kill.value, stir.value)
        state.reverse()
    show(state[0], image, result)
