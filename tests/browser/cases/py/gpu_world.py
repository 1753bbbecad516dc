"""What the cases of WebGPU need of the page they run in.

tests/desktop/gpu_world.py has the same names over wgpu-py: the cases run there as well, and
what that backend lacks is skipped with the reason that is given here.
"""

import gc
from types import SimpleNamespace

import js
import numpy as np
import pytest
from js import harness
from pyodide.ffi import create_proxy, run_sync, to_js

import dlpack_web as dlw

USAGE = {
    name: getattr(js.GPUBufferUsage, name)
    for name in ("STORAGE", "COPY_SRC", "COPY_DST", "UNIFORM", "MAP_READ")
}


def only_in_a_page(reason):
    """A mark for what the desktop has not."""

    def mark(test):
        return test

    assert reason
    return mark


def run(awaitable):
    return run_sync(awaitable)


def live():
    """Tensors alive, as C and as JavaScript count them."""
    return dlw.live_tensors(), harness.context.library.liveTensors()


def set_bytes(tensor, data):
    """Writes the memory of a CPU tensor."""
    harness.bytes(tensor.js).assign(data)


def get_bytes(tensor):
    return harness.bytes(tensor.js).to_bytes()


def start_counting():
    harness.counters.start()


def counted():
    """copies, copied_bytes, gpu_bytes and map_async since then, as they were seen to be called."""
    found = harness.counters.stop()
    return SimpleNamespace(
        copies=found.copies,
        copied_bytes=found.copied_bytes,
        gpu_bytes=found.gpu_bytes,
        map_async=found.map_async,
    )


def plain(**values):
    return to_js(values, dict_converter=js.Object.fromEntries)


def make_buffer(device, size, *flags):
    """A GPUBuffer that is none of ours; without flags with all that tensors need."""
    usage = sum(USAGE[name] for name in flags or ("STORAGE", "COPY_SRC", "COPY_DST"))
    return device.gpu.createBuffer(plain(size=size, usage=usage))


def same(one, other):
    """Whether two GPUBuffers or GPUDevices are the same."""
    return js.Object.is_(one, other)


def write_buffer(device, buffer, raw):
    device.gpu.queue.writeBuffer(buffer, 0, to_js(raw))


async def bytes_of(device, buffer, count):
    """What is in a buffer, by plain WebGPU."""
    gpu = device.gpu
    usage = USAGE["MAP_READ"] | USAGE["COPY_DST"]
    target = gpu.createBuffer(plain(size=count, usage=usage))
    encoder = gpu.createCommandEncoder()
    encoder.copyBufferToBuffer(buffer, 0, target, 0, count)
    gpu.queue.submit(to_js([encoder.finish()]))
    await target.mapAsync(1)  # GPUMapMode.READ
    return target.getMappedRange().to_py().tobytes()


def has_canvases():
    canvas = getattr(js, "OffscreenCanvas", None)
    return canvas is not None and hasattr(
        canvas.new(1, 1).getContext("2d"), "drawImage"
    )


def image_of(pixels):
    """An image of opaque RGBA bytes, as from_image takes it here."""
    if not hasattr(js, "ImageData"):
        pytest.skip("only pages have images")
    height, width, _ = pixels.shape
    data = js.Uint8ClampedArray.new(to_js(pixels.ravel()))
    return js.ImageData.new(data, width, height)


def canvas_of(width, height):
    return js.OffscreenCanvas.new(width, height)


def painted(pixels):
    """An image that knows no bytes: here an OffscreenCanvas."""
    height, width, _ = pixels.shape
    canvas = canvas_of(width, height)
    canvas.getContext("2d").putImageData(image_of(pixels), 0, 0)
    return canvas


def shown(canvas):
    """The RGBA pixels of a canvas."""
    width, height = canvas.width, canvas.height
    context = canvas_of(width, height).getContext("2d")
    context.drawImage(canvas, 0, 0)
    data = context.getImageData(0, 0, width, height).data
    return np.asarray(data.to_py()).reshape(height, width, 4)


def lacks(example):
    """What of an example's is not here; None: it runs."""
    if "OffscreenCanvas" in example and not has_canvases():
        return "only pages have canvases"
    return None


async def library_of(name):
    """A module of onnxruntime-web of its own, which has no device yet."""
    libraries = await harness.load("/tests/browser/libraries/libraries.mjs")
    return await libraries.loadOrt(f"ort.webgpu.bundle.min.mjs?{name}")


async def destroy(device):
    """Loses a device."""
    device.gpu.destroy()
    await device.gpu.lost


def limit(holder, name):
    """A limit of a GPUDevice or GPUAdapter, by WebGPU's name."""
    return getattr(holder.limits, name)


def has_feature(holder, name):
    return holder.features.has(name)


async def adapter():
    return await js.navigator.gpu.requestAdapter()


def memory():
    """Bytes that this program has."""
    return harness.context.pyodide._module.HEAPU8.byteLength


def callback(function):
    """A function for our side to call, until `forget`."""
    return create_proxy(function)


def forget(given):
    given.destroy()


def collect():
    """Both garbage collections; whether that of JavaScript could be asked for."""
    gc.collect()
    if hasattr(js, "gc"):
        js.gc()
        return True
    return False
