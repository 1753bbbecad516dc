"""What the cases of tests/browser/cases/py need of wgpu-py, in place of a page."""

import re
import resource

import wgpu
from in_cpython import *
from in_cpython import counts_since
from PIL import Image
from wgpu.backends.wgpu_native import GPUBuffer, GPUCommandEncoder

import dlpack_web as dlw
from dlpack_web._backends.desktop import wgpu as our_wgpu

USAGE = {
    name: int(getattr(wgpu.BufferUsage, name))
    for name in ("STORAGE", "COPY_SRC", "COPY_DST", "UNIFORM", "MAP_READ")
}
_before = []


def canvas_of(*_):
    raise NotImplementedError("a canvas, in a case that runs on the desktop")


shown = library_of = canvas_of


class _Maps:
    """Counts what is really mapped and copied, by the methods of wgpu-py's own."""

    def __init__(self):
        self.original, self.count = GPUBuffer.map_async, 0
        self.copy, self.gpu_bytes = GPUCommandEncoder.copy_buffer_to_buffer, 0

        def map_async(buffer, *args):
            self.count += 1
            return self.original(buffer, *args)

        def copy(encoder, *args):
            self.gpu_bytes += args[-1]
            return self.copy(encoder, *args)

        self.counting = map_async
        GPUCommandEncoder.copy_buffer_to_buffer = copy


def start_counting():
    maps = _Maps()
    GPUBuffer.map_async = maps.counting
    _before.append((maps, dlw.webgpu.stats()))


def counted():
    """copies, copied_bytes, gpu_bytes and map_async since then."""
    maps, before = _before.pop()
    GPUBuffer.map_async = maps.original
    GPUCommandEncoder.copy_buffer_to_buffer = maps.copy
    return counts_since(before, maps.gpu_bytes, maps.count)


def make_buffer(device, size, *flags):
    """A GPUBuffer that is none of ours; without flags with all that tensors need."""
    usage = sum(USAGE[name] for name in flags or ("STORAGE", "COPY_SRC", "COPY_DST"))
    return device.gpu.create_buffer(size=size, usage=usage)


def write_buffer(device, buffer, raw):
    device.gpu.queue.write_buffer(buffer, 0, raw)


async def bytes_of(device, buffer, count):
    """What is in a buffer, by plain wgpu-py."""
    return bytes(device.gpu.queue.read_buffer(buffer, 0, count))


def has_canvases():
    """Whether there is what images are painted on: here that is any array."""
    return True


def image_of(pixels):
    """An image of opaque RGBA bytes, as from_image takes it here."""
    return pixels


def painted(pixels):
    """An image that is no array: here Pillow's."""
    return Image.fromarray(pixels)


# What docstrings show that only a page has, by the words for it.
PAGES_OWN = {
    r"\bjs\b|Tensor\.js|to_js|from_js|dlw\.adapter": "JavaScript",
    r"share_device": "libraries of JavaScript",
    r"\.gpu\.limits\.|\.createBuffer": "the names of JavaScript's GPUDevice",
}


def lacks(example):
    """What of an example's is not here; None: it runs."""
    for pattern, what in PAGES_OWN.items():
        if re.search(pattern, example):
            return f"in a page only: {what}"
    return None


def limit(holder, name):
    """A limit of a GPUDevice or GPUAdapter, by WebGPU's name."""
    return our_wgpu.limits(holder)[name]


def has_feature(holder, name):
    return name in our_wgpu.features(holder)


async def adapter():
    return await wgpu.gpu.request_adapter_async()


def memory():
    """Bytes that this program had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
