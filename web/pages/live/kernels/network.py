"""A network: onnxruntime-web reads the digit in the white square of each frame.

Its input and output are tensors on the same device: nothing is read back.
"""

from live import onnx, slider

import dlpack_web as dlw

left = slider("left", 0, 1, 0.84)
top = slider("top", 0, 1, 0.5)
side = slider("side", 0.1, 0.9, 0.42)

network = await onnx("model/digits.onnx")  # 8 x 8 pixels -> 10 scores

LOOK = """
@group(0) @binding(0) var<storage, read> image: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> pixels: array<f32>;
@group(0) @binding(2) var<uniform> width: u32;
@group(0) @binding(3) var<uniform> left: f32;
@group(0) @binding(4) var<uniform> top: f32;
@group(0) @binding(5) var<uniform> side: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let size = vec2f(f32(width), f32(arrayLength(&image) / width));
  let square = side * size.y;
  let corner = vec2f(left, top) * (size - square);
  var ink = 0f;
  for (var i = 0u; i < 36; i++) {
    let part = (vec2f(f32(i % 6), f32(i / 6)) + 0.5) / 6;
    let at = vec2u(corner + (vec2f(f32(id.x % 8), f32(id.x / 8)) + part) * square / 8);
    ink += 1 - image[at.y * width + at.x].r;
  }
  pixels[id.x] = saturate(ink / 36);
}
"""

CHANCES = """
@group(0) @binding(0) var<storage, read> scores: array<f32>;
@group(0) @binding(1) var<storage, read_write> chances: array<f32>;

@compute @workgroup_size(1)
fn main() {
  var best = scores[0];
  for (var i = 1; i < 10; i++) { best = max(best, scores[i]); }
  var sum = 0f;
  for (var i = 0; i < 10; i++) { sum += exp(scores[i] - best); }
  for (var i = 0; i < 10; i++) { chances[i] = exp(scores[i] - best) / sum; }
}
"""

DRAW = """
@group(0) @binding(0) var<storage, read> image: array<vec4f>;
@group(0) @binding(1) var<storage, read> chances: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4f>;
@group(0) @binding(3) var<uniform> width: u32;
@group(0) @binding(4) var<uniform> left: f32;
@group(0) @binding(5) var<uniform> top: f32;
@group(0) @binding(6) var<uniform> side: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&result)) { return; }
  let size = vec2f(f32(width), f32(arrayLength(&image) / width));
  let at = vec2f(f32(id.x % width), f32(id.x / width));
  let square = side * size.y;
  let inside = abs(at - vec2f(left, top) * (size - square) - square / 2) - square / 2;
  var colour = image[id.x].rgb * 0.6;
  if (max(inside.x, inside.y) < 0) { colour = image[id.x].rgb; }
  if (abs(max(inside.x, inside.y)) < 1.5) { colour = vec3f(1, 0.75, 0.2); }
  let bar = u32(10 * at.x / size.x); // ten bars, 0 to 9, as high as the digit is likely
  let p = chances[bar];
  let within = fract(10 * at.x / size.x);
  if (at.y > size.y * (1 - 0.35 * p) && within > 0.15 && within < 0.85) {
    colour = mix(vec3f(0.3, 0.8, 0.75), vec3f(1, 0.75, 0.2), p);
  }
  result[id.x] = vec4f(colour, 1);
}
"""

look, softmax, draw = map(dlw.webgpu.Kernel, (LOOK, CHANCES, DRAW))
pixels = dlw.empty((1, 64), device="webgpu")
chances = dlw.empty(10, device="webgpu")


async def frame(image, result):
    where = image.shape[1], left.value, top.value, side.value
    look(image, pixels, *where)
    scores = await network(pixels=pixels)
    softmax(scores, chances, workgroups=1)
    draw(image, chances, result, *where)
    scores.release()
