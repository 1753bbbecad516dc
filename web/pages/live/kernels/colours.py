"""Colour map: turns brightness into colour with a table that NumPy computes."""

import numpy as np
from live import slider

import dlpack_web as dlw

turns = slider("turns", 0.2, 3, 1)
shift = slider("shift", 0, 1, 0)

table = np.ones((256, 4), np.float32)
phase = 2 * np.pi * (np.linspace(0, 1, 256)[:, None] + [0.0, 0.33, 0.67])
table[:, :3] = 0.5 - 0.5 * np.cos(phase)
table = dlw.from_dlpack(table, device="webgpu")

paint = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read> image: array<vec4f>;
@group(0) @binding(1) var<storage, read> colours: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4f>;
@group(0) @binding(3) var<uniform> turns: f32;
@group(0) @binding(4) var<uniform> shift: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&result)) { return; }
  let light = dot(image[id.x].rgb, vec3f(0.2126, 0.7152, 0.0722));
  result[id.x] = colours[u32(255 * fract(turns * light + shift))];
}
""")


def frame(image, result):
    paint(image, table, result, turns.value, shift.value)
