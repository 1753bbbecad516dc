"""Python for the demo page: NumPy -> JS -> GPU -> WGSL -> NumPy.

`page` is the page's JavaScript. It counts and times the code inside `with step(...)`;
`check` records whether a condition holds.
"""

from contextlib import contextmanager

import numpy as np
import page

import dlpack_web as dlw

TILE = 8  # workgroups of 8 x 8 invocations
TOLERANCE = 1e-5  # pixel values are 0..1 in float32; sums of a few hundred products

BLUR = """
@group(0) @binding(0) var<storage, read> src: array<vec4f>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> dst: array<vec4f>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let at = vec2i(id.xy);
  if (any(at >= SIZE)) { return; }
  var sum = vec4f();
  for (var k = -RADIUS; k <= RADIUS; k++) {
    let near = clamp(at + k * ALONG, vec2i(), SIZE - 1);
    sum += weights[k + RADIUS] * src[near.y * SIZE.x + near.x];
  }
  dst[at.y * SIZE.x + at.x] = sum;
}
"""

SOBEL = """
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
  var slope = vec2f();
  for (var k = -1; k <= 1; k++) {
    let weight = f32(2 - abs(k));
    slope.x += weight * (gray(at + vec2i(1, k)) - gray(at + vec2i(-1, k)));
    slope.y += weight * (gray(at + vec2i(k, 1)) - gray(at + vec2i(k, -1)));
  }
  dst[at.y * SIZE.x + at.x] = length(slope);
}
"""


async def start():
    """Requests a GPU from the browser; every run uses the same one."""
    return await dlw.webgpu.request_device()


async def run(device, pixels, height, width, sigma, grow):
    """`pixels` is the decoded photograph, a Uint8Array of RGBA that JavaScript owns.

    Only the first run makes memory grow: WebAssembly's never shrinks again.
    """
    live_before = dlw.live_tensors()

    with step("photo to NumPy", height * width * 4):
        rgba = dlw.from_js(pixels)  # one copy: JavaScript's memory -> Python's
        image = rgba.numpy().reshape(height, width, 4) / np.float32(255)
    weights = gaussian(sigma)

    with step("NumPy to JS view", image.nbytes):
        tensor = dlw.from_dlpack(image)
        view = tensor.js.data  # a Float32Array over NumPy's own memory
    check("same address in NumPy and JS", image.ctypes.data == view.byteOffset)
    kept = float(image[0, 0, 0])
    page.poke(tensor.js, 0, 0.25)
    check("Python sees what JS wrote", image[0, 0, 0] == np.float32(0.25))
    image[0, 0, 0] = kept
    check("JS sees what Python wrote", page.peek(tensor.js, 0) == kept)

    if grow:
        grow_memory(view)
        check("memory grew and the old view died", view.byteLength == 0)
    with step("JS view after memory growth", image.nbytes):
        fresh = tensor.js.data
    check("the new view reads the same pixels", page.peek(tensor.js, 0) == kept)
    check("same address after growth", image.ctypes.data == fresh.byteOffset)

    with step("upload weights", weights.nbytes):
        taps = dlw.from_dlpack(weights).to_device(device)
    with step("upload image", image.nbytes):
        source = tensor.to_device(device)

    blur_x, blur_y, sobel = kernels(height, width, len(weights) // 2)
    groups = (-(-width // TILE), -(-height // TILE), 1)
    with step("blur and Sobel kernels", 0):
        half, blurred = (dlw.empty(image.shape, device=device) for _ in "xy")
        edges = dlw.empty((height, width), device=device)
        blur_x(source, taps, half, workgroups=groups)
        blur_y(half, taps, blurred, workgroups=groups)
        sobel(blurred, edges, workgroups=groups)
        await source.js.device.gpu.queue.onSubmittedWorkDone()  # only to time it

    with step("readback blurred image", image.nbytes):
        blurred_host = await blurred.to_host()
    edges_host = np.empty((height, width), np.float32)
    with step("readback edges (out=)", edges_host.nbytes):
        await edges.to_host(out=edges_host)

    blurred_ref, edges_ref = reference(image, weights)
    error = max(
        np.abs(blurred_host - blurred_ref).max(), np.abs(edges_host - edges_ref).max()
    )
    check(f"GPU equals NumPy within {TOLERANCE}", error <= TOLERANCE)
    for name, array in (
        ("source", image),
        ("blurred", blurred_host),
        ("edges", edges_host),
    ):
        with dlw.from_dlpack(array) as shown:
            page.draw(name, shown.js)

    for each in (rgba, tensor, taps, source, half, blurred, edges):
        each.release()
    check("every tensor was released", dlw.live_tensors() == live_before)
    return float(error)


def gaussian(sigma):
    """Normalised weights of a Gaussian, cut at three standard deviations."""
    at = np.arange(-round(3 * sigma), round(3 * sigma) + 1)
    weights = np.exp(-0.5 * (at / sigma) ** 2)
    return (weights / weights.sum()).astype(np.float32)


def kernels(height, width, radius):
    """The two passes of the separable blur, and the Sobel operator."""
    head = f"const SIZE = vec2i({width}, {height}); const RADIUS = {radius};"
    along_x, along_y = ("const ALONG = vec2i(1, 0);", "const ALONG = vec2i(0, 1);")
    return tuple(
        dlw.webgpu.Kernel(head + code)
        for code in (along_x + BLUR, along_y + BLUR, SOBEL)
    )


def reference(image, weights):
    """The same in NumPy, float32 as on the GPU, the edge pixels repeated outwards."""
    blurred = image
    for axis in (1, 0):
        reach = [(0, 0)] * 3
        reach[axis] = (len(weights) // 2,) * 2
        wide = np.moveaxis(np.pad(blurred, reach, mode="edge"), axis, 0)
        count = image.shape[axis]
        total = sum(weight * wide[k : k + count] for k, weight in enumerate(weights))
        blurred = np.moveaxis(total, 0, axis)
    gray = blurred[..., :3] @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    g = np.pad(gray, 1, mode="edge")
    right, left = (
        g[:-2, c] + 2 * g[1:-1, c] + g[2:, c] for c in (np.s_[2:], np.s_[:-2])
    )
    below, above = (
        g[r, :-2] + 2 * g[r, 1:-1] + g[r, 2:] for r in (np.s_[2:], np.s_[:-2])
    )
    return blurred, np.hypot(right - left, below - above)


def grow_memory(view):
    """Allocates memory until WebAssembly's grows, which detaches every older view."""
    taken = []
    while view.byteLength:
        taken.append(np.ones(4 << 20))


@contextmanager
def step(name, nbytes):
    page.begin(name, nbytes)
    try:
        yield
    finally:
        page.end()


def check(name, held):
    page.check(name, bool(held))
