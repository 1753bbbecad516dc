# %% [markdown]
# # Image processing on the GPU
# A photograph goes from NumPy to the GPU, through a blur and an edge filter in WGSL,
# and back into a plot. There are two copies: one up and one down.

# %%
import sys

if sys.platform == "emscripten":  # a page; on the desktop, install them with pip
    import micropip

    await micropip.install(["dlpack-web", "matplotlib", "pillow"])  # as %pip does

# %%
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import dlpack_web as dlw

device = await dlw.webgpu.request_device()
photo = np.asarray(Image.open("photo.jpg").convert("RGB"))
photo.shape

# %%
dlw.from_dlpack(photo)

# %%
image = np.ones(
    (*photo.shape[:2], 4), np.float32
)  # WGSL has vec4f, and no packed vec3f
image[..., :3] = photo / np.float32(255)
source = dlw.from_dlpack(image, device=device)
source

# %%
height, width, _ = image.shape
HEAD = f"const SIZE = vec2i({width}, {height});"
BLUR = (
    HEAD
    + """
@group(0) @binding(0) var<storage, read> src: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4f>;
@group(0) @binding(2) var<uniform> sigma: f32;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let at = vec2i(id.xy);
  if (any(at >= SIZE)) { return; }
  let radius = i32(2 * sigma);
  var sum = vec4f();
  for (var j = -radius; j <= radius; j++) {
    for (var i = -radius; i <= radius; i++) {
      let near = clamp(at + vec2i(i, j), vec2i(), SIZE - 1);
      sum += exp(-0.5 * f32(i * i + j * j) / (sigma * sigma)) * vec4f(src[near.y * SIZE.x + near.x].rgb, 1);
    }
  }
  dst[at.y * SIZE.x + at.x] = sum / sum.a;
}"""
)
EDGES = (
    HEAD
    + """
@group(0) @binding(0) var<storage, read> src: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;

fn gray(at: vec2i) -> f32 {
  let near = clamp(at, vec2i(), SIZE - 1);
  return dot(src[near.y * SIZE.x + near.x].rgb, vec3f(0.2126, 0.7152, 0.0722));
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let at = vec2i(id.xy);
  if (any(at >= SIZE)) { return; }
  let slope = vec2f(gray(at + vec2i(1, 0)) - gray(at - vec2i(1, 0)),
                    gray(at + vec2i(0, 1)) - gray(at - vec2i(0, 1)));
  dst[at.y * SIZE.x + at.x] = length(slope);
}"""
)
groups = (-(-width // 8), -(-height // 8))
blurred = dlw.empty(image.shape, device=device)
edges = dlw.empty((height, width), device=device)
dlw.webgpu.Kernel(BLUR)(source, blurred, 2.0, workgroups=groups)
dlw.webgpu.Kernel(EDGES)(blurred, edges, workgroups=groups)
soft, lines = await dlw.to_host(blurred, edges)
soft.shape, lines.shape

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained")
for axis, picture, title in zip(
    axes, (image, soft, lines), ("photo", "blurred", "edges"), strict=True
):
    axis.imshow(
        picture.clip(0, 1), cmap="gray", vmax=None if title != "edges" else 0.25
    )
    axis.set_title(title)
    axis.set_axis_off()
plt.show()

# %%
# NumPy agrees: the edges of the blurred picture.
gray = np.pad(soft[..., :3] @ np.float32([0.2126, 0.7152, 0.0722]), 1, mode="edge")
slope = np.hypot(gray[1:-1, 2:] - gray[1:-1, :-2], gray[2:, 1:-1] - gray[:-2, 1:-1])
bool(np.abs(slope - lines).max() < 1e-5)
