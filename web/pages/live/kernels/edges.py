"""Edges: the gradient of the picture at each pixel (Sobel)."""

from live import slider

import dlpack_web as dlw

strength = slider("strength", 0, 4, 1.5)
colour = slider("colour", 0, 1, 0.4)

edges = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read> image: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4f>;
@group(0) @binding(2) var<uniform> width: u32;
@group(0) @binding(3) var<uniform> strength: f32;
@group(0) @binding(4) var<uniform> colour: f32;

fn light(x: i32, y: i32) -> f32 {
  let size = vec2i(i32(width), i32(arrayLength(&image) / width));
  let at = clamp(vec2i(x, y), vec2i(), size - 1);
  return dot(image[at.y * size.x + at.x].rgb, vec3f(0.2126, 0.7152, 0.0722));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&result)) { return; }
  let x = i32(id.x % width);
  let y = i32(id.x / width);
  let a = light(x - 1, y - 1); let b = light(x, y - 1); let c = light(x + 1, y - 1);
  let d = light(x - 1, y);                              let f = light(x + 1, y);
  let g = light(x - 1, y + 1); let h = light(x, y + 1); let i = light(x + 1, y + 1);
  let slope = vec2f(c + 2 * f + i - a - 2 * d - g, g + 2 * h + i - a - 2 * b - c);
  let line = vec3f(strength * length(slope));
  result[id.x] = vec4f(line * mix(vec3f(1), 1.6 * image[id.x].rgb, colour), 1);
}
""")


def frame(image, result):
    edges(image, result, image.shape[1], strength.value, colour.value)
