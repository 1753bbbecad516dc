"""Python for the chain page: NumPy -> onnxruntime-web -> TensorFlow.js -> jax-js ->
WGSL -> NumPy, on one GPU device.

`page` is the JavaScript of the page (or the worker). It counts and times the code
inside `with step(...)`; `check` records whether a condition holds.
"""

from contextlib import contextmanager

import numpy as np
import page

import dlpack_web as dlw

SIDE = 8  # pixels of a digit, along each axis
TOLERANCE = 1e-4  # probabilities of float32 sums; each library sums in its own order

TOP = """
@group(0) @binding(0) var<storage, read> scores: array<f32>;
@group(0) @binding(1) var<storage, read_write> top: array<vec2f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&top)) { return; }
  var best = 0u;
  for (var i = 1u; i < 10; i++) {
    if (scores[id.x * 10 + i] > scores[id.x * 10 + best]) { best = i; }
  }
  top[id.x] = vec2f(f32(best), scores[id.x * 10 + best]);
}
"""


async def start(ort, tf, jax):
    """Puts the libraries on one device, and makes the adapters and the kernel."""
    device = await dlw.webgpu.share_device(ort=ort, tf=tf, jax=jax)
    return {
        "device": device,
        "kernel": dlw.webgpu.Kernel(TOP),
        "ort": await dlw.adapter("ort", ort),
        "tf": await dlw.adapter("tfjs", tf),
        "jax": await dlw.adapter("jax", jax),
    }


async def run(with_, session, ops, pixels, height, width, sheet, weights):
    """Reads the digits in a picture; returns labels, scores, and the largest error.

    pixels: RGBA, a Uint8Array that JavaScript owns. session: of onnxruntime-web. ops: the
    page's softmax (TensorFlow.js) and sharpen (jax-js). sheet: rows, columns and margin
    of the digits. weights: of the network, for the reference that NumPy computes.
    """
    device, ort, tf, jax = (with_[name] for name in ("device", "ort", "tf", "jax"))
    live_before = dlw.live_tensors()

    with step("photo to NumPy", len(pixels)):
        rgba = dlw.from_js(pixels)  # one copy: JavaScript's memory -> Python's
    with step("NumPy: even the light, cut, shrink", len(pixels)):
        digits = prepare(rgba.numpy().reshape(height, width, 4), sheet)
    with step("NumPy to GPU", digits.nbytes):
        x = dlw.from_dlpack(digits).to_device(device)

    with step("hand to onnxruntime-web", digits.nbytes):
        feed = ort.to_js(x, copy=False)
    with step("onnxruntime-web: the network", 0):
        logits = await ops.network(session, feed)
    with step("take from onnxruntime-web", len(digits) * 40):
        y = ort.from_js(logits)

    with step("hand to TensorFlow.js", y.nbytes):
        t = tf.to_js(y, copy=False)
    with step("TensorFlow.js: softmax", 0):
        softmax = ops.softmax(t)
    with step("take from TensorFlow.js", y.nbytes):
        p = tf.from_js(softmax)

    with step("hand to jax-js", p.nbytes):
        a = jax.to_js(p, copy=False)
    with step("jax-js: sharpen", 0):
        sharp = ops.sharpen(a)
    with step("take from jax-js", p.nbytes):
        s = jax.from_js(sharp)

    top = dlw.empty((len(digits), 2), device=device)
    with step("WGSL: the best of ten", 0):
        with_["kernel"](s, top, workgroups=-(-len(digits) // 64))
    with step("GPU to NumPy", top.nbytes):
        found = await top.to_host()

    expected = reference(digits, weights)
    error = float(np.abs(found[:, 1] - expected.max(1)).max())
    check(f"GPU equals NumPy within {TOLERANCE}", error <= TOLERANCE)
    same = (found[:, 0] == expected.argmax(1)).all()
    check("the same digits as NumPy's network", same)

    for each in (feed, logits, t, softmax, a, sharp):
        each.dispose()
    for each in (rgba, x, y, p, s, top):
        each.release()
    check("every tensor was released", dlw.live_tensors() == live_before)
    labels = found[:, 0].astype(np.uint8)
    return labels, found[:, 1].copy(), error


def prepare(image, sheet):
    """A photograph of rows x columns digits -> [digits, 64], 0 (paper) to 1 (ink)."""
    rows, columns, margin = sheet.rows, sheet.columns, sheet.margin
    red = image[..., 0].astype(np.float32)  # where blue ink is darkest
    height, width = red.shape
    cells = red.reshape(rows, height // rows, columns, width // columns)
    # The brightest pixel of a cell is paper, as lit by the lamp there.
    paper = np.percentile(cells, 98, axis=(1, 3), keepdims=True)
    cells = (cells / paper)[:, margin:-margin, :, margin:-margin]
    fine = cells.reshape(rows, SIDE, -1, columns, SIDE, cells.shape[3] // SIDE)
    ink = 1 - fine.mean(axis=(2, 5)).transpose(0, 2, 1, 3)
    strongest = np.percentile(ink, 99.5)
    digits = (ink / strongest).clip(0, 1)
    return np.ascontiguousarray(digits.reshape(rows * columns, SIDE * SIDE))


def reference(digits, weights):
    """The same chain in NumPy, in float64."""
    hidden = np.maximum(digits.astype(float) @ weights["w1"] + weights["b1"], 0)
    logits = hidden @ weights["w2"] + weights["b2"]
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p**2 / (p**2).sum(1, keepdims=True)


@contextmanager
def step(name, nbytes):
    page.begin(name, nbytes)
    try:
        yield
    finally:
        page.end()


def check(name, held):
    page.check(name, bool(held))
