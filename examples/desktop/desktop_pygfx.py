"""NumPy arrays, drawn by pygfx on the desktop, offscreen: positions and colours go to the GPU
once each, a kernel moves the positions there, and pygfx draws the same memory.

    pip install '../..[webgpu]' numpy pygfx rendercanvas pillow
    python desktop_pygfx.py wave.png

Two ways without a copy, both shown: a Tensor over a buffer that pygfx made, by `from_wgpu`; and
a pygfx buffer over a Tensor's, by `to_wgpu`. For the second pygfx 0.17 has no public argument:
its `Buffer` keeps the wgpu.GPUBuffer in `_wgpu_object` and makes one where that is None.
A `Texture` cannot lie over a buffer; images go by `texture.send_data`, a copy within the GPU's
queue.
"""

import asyncio
import sys

import numpy as np
import pygfx as gfx
import wgpu
from PIL import Image
from pygfx.renderers.wgpu.engine.update import ensure_wgpu_object
from rendercanvas.offscreen import RenderCanvas

import dlpack_web as dlw

WIDTH, HEIGHT = 480, 380
COLUMNS, ROWS = 24, 16
STEP = 20  # pixels from a point to the next

WAVE = """
@group(0) @binding(0) var<storage, read_write> points: array<f32>;  // x, y, z of each
@group(0) @binding(1) var<uniform> amplitude: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let at = 3 * id.x;
  if (at < arrayLength(&points)) {
    points[at + 1] += amplitude * sin(points[at] / 60);
  }
}"""


def grid() -> np.ndarray:
    """Positions in pixels, (0, 0) being the middle of the picture."""
    y, x = np.mgrid[:ROWS, :COLUMNS] * STEP
    x, y = x - (COLUMNS - 1) * STEP / 2, y - (ROWS - 1) * STEP / 2
    return np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3).astype("f4")


def colours() -> np.ndarray:
    """Red grows to the right, green upwards; sRGB with alpha."""
    y, x = np.mgrid[0 : 1 : ROWS * 1j, 0 : 1 : COLUMNS * 1j]
    return np.stack([x, y, 1 - x, 1 + 0 * x], axis=-1).reshape(-1, 4).astype("f4")


def over_pygfx(buffer: gfx.Buffer, shape: tuple[int, ...]) -> dlw.Tensor:
    """A Tensor over the memory of a pygfx buffer that has none on the CPU."""
    return dlw.webgpu.from_wgpu(ensure_wgpu_object(buffer), shape, "float32")


def for_pygfx(tensor: dlw.Tensor) -> gfx.Buffer:
    """A pygfx buffer over the memory of a Tensor, which is not used for others any more."""
    memory = tensor.to_wgpu()
    count, width = tensor.shape
    buffer = gfx.Buffer(
        nbytes=tensor.nbytes, nitems=count, format=f"{width}xf4", usage=memory.usage
    )
    buffer._wgpu_object = memory
    return buffer


async def picture(amplitude: float = 30) -> np.ndarray:
    """RGBA of shape (HEIGHT, WIDTH, 4)."""
    canvas = RenderCanvas(size=(WIDTH, HEIGHT), pixel_ratio=1)
    renderer = gfx.WgpuRenderer(canvas, pixel_scale=1)
    device = dlw.webgpu.use_device(renderer.device)

    array = grid()
    positions = gfx.Buffer(
        nbytes=array.nbytes,
        nitems=len(array),
        format="3xf4",
        usage=wgpu.BufferUsage.STORAGE
        | wgpu.BufferUsage.VERTEX
        | wgpu.BufferUsage.COPY_DST,
    )
    with over_pygfx(positions, array.shape) as tensor:
        tensor.write(array)
        dlw.webgpu.Kernel(WAVE)(tensor, amplitude, workgroups=-(-len(array) // 64))

    with dlw.from_dlpack(colours(), device=device) as tensor:
        buffer = for_pygfx(tensor)
    points = gfx.Points(
        gfx.Geometry(positions=positions, colors=buffer),
        gfx.PointsMaterial(size=12, color_mode="vertex"),
    )
    scene = gfx.Scene().add(gfx.Background.from_color("#fff"), points)
    camera = gfx.OrthographicCamera(WIDTH, HEIGHT)
    canvas.request_draw(lambda: renderer.render(scene, camera))
    return np.asarray(canvas.draw())


if __name__ == "__main__":
    pixels = asyncio.run(picture())
    Image.fromarray(pixels).save(sys.argv[1] if len(sys.argv) > 1 else "wave.png")
