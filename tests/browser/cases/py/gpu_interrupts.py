"""Interrupts, inside the page: wherever one comes, nothing stays pending or is lost.

Each operation is run once for each place that interrupting.py finds in our files.
"""

import asyncio
import gc
import sys

import js
import numpy as np
import pyodide_js
import pytest
from gpu_fixtures import live, needs_canvas
from interrupting import Interrupt
from js import Float32Array, Object
from pyodide.ffi import run_sync, to_js

import dlpack_web as dlw

pytestmark = [
    pytest.mark.usefixtures("device", "nothing_leaks"),
    # What CPython says of one that is interrupted before its first step.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]

TRIPLE = """
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<uniform> factor: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&src)) { dst[id.x] = factor * src[id.x]; }
}
"""
ARRAY = np.arange(6, dtype="f4")

TRIPLED = dlw.webgpu.ElementwiseKernel("f32 x, f32 k", "f32 y", "y = k * x")
TOTAL = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)


async def upload():
    with dlw.from_dlpack(ARRAY, device="webgpu") as tensor:
        return await tensor.to_host()


async def upload_strided():
    wide = np.repeat(ARRAY.astype("f8"), 2)[::2]
    with dlw.from_dlpack(wide) as tensor:
        on_gpu = tensor.to_device("webgpu", dtype="float32")
    return await on_gpu.to_host()


async def write():
    with dlw.empty(6, device="webgpu") as tensor:
        tensor.write(ARRAY)
        return await tensor.to_host()


async def read_many():
    tensors = [dlw.from_dlpack(ARRAY, device="webgpu") for _ in range(3)]
    first, _, last = await dlw.to_host(*tensors)
    assert (first == last).all()
    return first


async def read_into():
    out = np.empty_like(ARRAY)
    return await dlw.from_dlpack(ARRAY, device="webgpu").to_host(out)


async def read_blocking():
    return np.asarray(dlw.from_dlpack(ARRAY, device="webgpu"))


async def numpy_from_gpu():
    return np.from_dlpack(dlw.from_dlpack(ARRAY, device="webgpu"), device="cpu")


async def kernel():
    x = dlw.from_dlpack(ARRAY / 3, device="webgpu")
    y = dlw.empty(6, device="webgpu")
    dlw.webgpu.Kernel(TRIPLE)(x, y, 3.0)
    return np.round(await y.to_host())


async def formulas():
    y = TRIPLED(dlw.from_dlpack(ARRAY / 3, device="webgpu"), 3.0)
    assert np.round(await TOTAL(y).to_host()) == ARRAY.sum()
    return np.round(await y.to_host())


async def batch():
    x = dlw.from_dlpack(ARRAY / 3, device="webgpu")
    y = dlw.empty(6, device="webgpu")
    triple = dlw.webgpu.Kernel(TRIPLE)
    with dlw.webgpu.batch() as b:
        triple(x, y, 1.0)
    b.update(0, {2: 3.0})
    b.run()
    return np.round(await y.to_host())


async def image():
    canvas = js.OffscreenCanvas.new(3, 2)
    canvas.getContext("2d").fillRect(0, 0, 3, 2)
    with await dlw.webgpu.from_image(canvas, dtype="float32") as tensor:
        return (await tensor.to_host())[..., 3].ravel() * ARRAY


async def draw():
    rgb = np.ones((1, 2, 3), "u1")
    await dlw.webgpu.to_canvas(
        dlw.from_dlpack(rgb, device="webgpu"), js.OffscreenCanvas.new(2, 1)
    )
    return ARRAY


async def javascript():
    with dlw.from_dlpack(ARRAY) as tensor:
        view = tensor.js.data
        with dlw.from_js(view.slice()) as copied:
            return copied.numpy().copy()


async def library():
    ndarray = await dlw.adapter("ndarray", None)
    row = {"data": Float32Array.new(to_js(ARRAY.tolist())), "shape": [6], "stride": [1]}
    with ndarray.from_js(to_js(row, dict_converter=Object.fromEntries)) as back:
        return back.numpy().copy()


async def file_of_python():
    data = await dlw.save(None, {"a": dlw.from_dlpack(ARRAY, device="webgpu")})
    with await dlw.open(data, device="webgpu") as file:
        return await file["a"].to_host()


async def file_of_javascript():
    data = await dlw.save(None, ARRAY)
    blob = js.Blob.new(to_js([to_js(data)]))
    with await dlw.open(blob, device="webgpu", progress=lambda *_: None) as tensor:
        return await tensor.to_host()


async def mapping_of_javascript():
    stream = js.TransformStream.new()
    reading = js.Response.new(stream.readable).blob()
    await dlw.save(stream.writable, {"a": ARRAY})
    with await dlw.open(await reading) as file:
        (tensor,) = await file.load("a")
        return tensor.numpy().copy()


OPERATIONS = [
    upload,
    upload_strided,
    write,
    read_many,
    read_into,
    read_blocking,
    numpy_from_gpu,
    kernel,
    formulas,
    batch,
    pytest.param(image, marks=needs_canvas),
    pytest.param(draw, marks=needs_canvas),
    javascript,
    library,
    file_of_python,
    file_of_javascript,
    mapping_of_javascript,
]


def held():
    """Tensors, and GPU buffers under them."""
    return *live(), [row["buffers"] for row in dlw.webgpu.stats()]


async def settled(before):
    """What is held, once nothing is under way any more; at most a minute later."""
    # Pyodide keeps the last exception, and a failed task is in a cycle with its frames.
    sys.last_exc = sys.last_value = sys.last_traceback = None
    for turn in range(6000):
        if held() == before:
            break
        await asyncio.sleep(0.01)
        if turn % 50 == 5:
            gc.collect()
    return held()


async def interrupted(operation, at):
    """Whether the interrupt came out, and how many places there were before the end."""
    with Interrupt(at) as places:
        try:
            await operation()
        except KeyboardInterrupt:
            return True, places.count
    return False, places.count


async def places_of(operation):
    """The numbers of at most 100 places: a file has a thousand, which would take minutes."""
    _, count = await interrupted(operation, 0)
    assert count > 5
    return range(1, count + 1, 1 + count // 100)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.__name__)
def test_interrupted_anywhere(operation):
    async def everywhere():
        assert (await operation() == ARRAY).all()
        before = held()
        for at in await places_of(operation):
            came_out, _ = await interrupted(operation, at)
            gc.collect(0)
            assert (at, await settled(before)) == (at, before)
            assert came_out
        assert (await operation() == ARRAY).all()

    run_sync(everywhere())


def reading(tensor):
    return lambda: np.asarray(tensor)


def importing(tensor):
    return lambda: np.from_dlpack(tensor, device="cpu")


def loading(tensor):
    data = run_sync(dlw.save(None, {"a": tensor}))
    file = run_sync(dlw.open(js.Blob.new(to_js([to_js(data)]))))

    def load():
        with file["a"] as loaded:
            return loaded.numpy().copy()

    return load


@pytest.mark.parametrize("begin", [reading, importing, loading])
def test_interrupted_while_python_blocks(begin):
    """By Pyodide's own buffer, into which CPython looks at every 50th place: each of ours is
    hit, and each of asyncio's, whose errors Pyodide's run_sync does not look at."""
    with dlw.from_dlpack(ARRAY, device="webgpu") as tensor:
        block = begin(tensor)
        assert (block() == ARRAY).all()
        before = held()
        buffer = js.Uint8Array.new(1)
        for phase in range(100):
            pyodide_js.setInterruptBuffer(buffer)
            try:
                for _ in range(phase):  # of the 50
                    pass
                buffer[0] = 2
                for _ in range(50):
                    block()
                pytest.fail("the interrupt was lost")
            except KeyboardInterrupt:
                pass
            finally:
                pyodide_js.setInterruptBuffer(None)
        assert (block() == ARRAY).all()
        assert run_sync(settled(before)) == before
