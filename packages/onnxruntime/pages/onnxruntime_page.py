"""Digits in a photograph are read twice: on the GPU, and on the CPU by NumPy."""

import numpy as np
import onnxruntime as ort

import dlpack_web as dlw

CUT = """
@group(0) @binding(0) var<storage, read> photo: array<u32>; // RGBA
@group(0) @binding(1) var<uniform> columns: u32;
@group(0) @binding(2) var<storage, read_write> pictures: array<f32>;

var<workgroup> blocks: array<f32, 144>;

@compute @workgroup_size(12, 12) // a block of 4 x 4 pixels each, 12 x 12 to a digit
fn main(@builtin(workgroup_id) digit: vec3u, @builtin(local_invocation_id) block: vec3u) {
  let corner = 48 * vec2u(digit.x % columns, digit.x / columns) + 4 * block.xy;
  var sum = 0.0;
  for (var i = 0u; i < 16; i++) {
    let at = corner + vec2u(i % 4, i / 4);
    sum += f32(photo[48 * columns * at.y + at.x] & 255);
  }
  blocks[12 * block.y + block.x] = sum;
  workgroupBarrier();
  var paper = sum;
  var ink = sum;
  for (var i = 0u; i < 144; i++) {
    paper = max(paper, blocks[i]);
    ink = min(ink, blocks[i]);
  }
  let place = block.xy - 2; // there is a margin
  if (all(block.xy >= vec2u(2)) && all(place < vec2u(8))) {
    pictures[64 * digit.x + 8 * place.y + place.x] = (paper - sum) / max(paper - ink, 1);
  }
}
"""

BEST = """
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> best: array<vec2f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&best)) { return; }
  var label = 0u;
  for (var i = 1u; i < 10; i++) {
    if (logits[10 * id.x + i] > logits[10 * id.x + label]) { label = i; }
  }
  var sum = 0.0;
  for (var i = 0u; i < 10; i++) {
    sum += exp(logits[10 * id.x + i] - logits[10 * id.x + label]);
  }
  best[id.x] = vec2f(f32(label), 1 / sum);
}
"""


async def start(model):
    """The sessions and kernels for both ways."""
    create = ort.InferenceSession.create
    return {
        "gpu": await create(model, providers=["WebGPUExecutionProvider"]),
        "cpu": await create(model, providers=["CPUExecutionProvider"]),
        "cut": dlw.webgpu.Kernel(CUT),
        "best": dlw.webgpu.Kernel(BEST),
    }


async def on_gpu(made, photo):
    """photo: RGBA, uint8 -> labels and scores, [N, 2]."""
    height, width, _ = photo.shape
    count = height // 48 * (width // 48)
    rgba = dlw.from_dlpack(photo, device="webgpu")
    pictures = dlw.empty((count, 1, 8, 8), device="webgpu")
    made["cut"](rgba, width // 48, pictures, workgroups=count)

    feeds = {"pictures": ort.OrtValue.from_dlpack(pictures)}
    run = made["gpu"].run_with_ort_values_async
    (logits,) = await run(["logits"], feeds)  # on the GPU, like its input

    best = dlw.empty((count, 2), device="webgpu")
    made["best"](dlw.from_dlpack(logits), best)
    return await best.to_host()


async def on_cpu(made, photo):
    """The same with NumPy."""
    logits = await network(made["cpu"], cut(photo))
    label = logits.argmax(axis=1)
    score = 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)
    return np.stack([label, score], axis=1).astype(np.float32)


def cut(photo):
    height, width, _ = photo.shape
    red = photo[..., 0].astype(np.float32)
    blocks = red.reshape(height // 48, 12, 4, width // 48, 12, 4).sum(axis=(2, 5))
    blocks = blocks.transpose(0, 2, 1, 3).reshape(-1, 12, 12)
    paper = blocks.max(axis=(1, 2), keepdims=True)
    ink = blocks.min(axis=(1, 2), keepdims=True)
    pictures = (paper - blocks) / np.maximum(paper - ink, 1)
    return np.ascontiguousarray(pictures[:, None, 2:-2, 2:-2])


async def network(session, pictures):
    """The network alone, from NumPy to NumPy. If Python can block, use
    session.run(...)."""
    (logits,) = await session.run_async(["logits"], {"pictures": pictures})
    return logits
