"""The parts of rows that are Python: ours, and what programs do without dlpack-web."""

import io

import numpy as np

import dlpack_web as dlw


def make_array(nbytes):
    return np.random.default_rng(nbytes).random(nbytes // 4, dtype=np.float32)


def _square(array):
    return array.reshape(1 << (array.size.bit_length() // 2), -1)


LAYOUTS = {
    "contiguous": lambda a: a,
    "in use": lambda a: a,
    "transposed": lambda a: _square(a).T,
    "strided": lambda a: np.repeat(a, 2)[::2],
    "reversed": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(
        a[: a.size // 1024, None], (a.size // 1024, 1024)
    ),
    "HWC-CHW": lambda a: a[: a.size // 12 * 12].reshape(-1, 3).T,
    "CHW-HWC": lambda a: a[: a.size // 12 * 12].reshape(3, -1).T,
}
# From which dtype, and to which.
CONVERSIONS = {"f64": ("f8", "f4"), "f16": ("f4", "f2")}


def laid_out(nbytes, layout, dtype="f4"):
    """An array of `nbytes`, after a conversion if the layout names one, and a function: the array that
    today's ways take."""
    if layout in CONVERSIONS:
        wide, narrow = CONVERSIONS[layout]
        count = nbytes // np.dtype(narrow).itemsize
        source = np.random.default_rng(1).random(count, dtype="f4").astype(wide)
        return source, lambda: source.astype(narrow)
    raw = np.random.default_rng(1).integers(0, 256, nbytes, dtype=np.uint8)
    source = LAYOUTS[layout](raw.view(dtype))
    return source, lambda: np.ascontiguousarray(source)


def write_as_wgpu_py(queue, buffer, array):
    from js import Uint8Array

    view = memoryview(array).cast("B")
    copy = Uint8Array.new(view.nbytes)
    copy.assign(view)
    queue.writeBuffer(buffer, 0, copy, 0, view.nbytes)


def calls(wgsl, has_number, *tensors):
    """A function that calls a kernel `n` times."""
    kernel = dlw.webgpu.Kernel(wgsl)

    def run(n):
        for _ in range(n):
            kernel(*tensors, workgroups=1)

    def run_with_number(n):
        for i in range(n):
            kernel(*tensors, 1.0 + i, workgroups=1)

    return run_with_number if has_number else run


def replaying(sources, *tensors):
    """Functions that replay recorded kernels `n` times, call them one by one, and release the batch."""
    kernels = [dlw.webgpu.Kernel(wgsl) for wgsl in sources]

    def call():
        for i, kernel in enumerate(kernels):
            kernel(tensors[i], tensors[i + 1], workgroups=1)

    with dlw.webgpu.batch() as batch:
        call()

    def replay(n):
        for _ in range(n):
            batch.run()

    def direct(n):
        for _ in range(n):
            call()

    return replay, direct, batch.release


async def load(url):
    """An .npy file without dlpack-web."""
    from pyodide.http import pyfetch

    response = await pyfetch(url)
    return np.load(io.BytesIO(await response.bytes()))
