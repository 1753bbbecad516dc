"""What the cases of tests/browser/cases/py need of a GPU in memory, in place of a page."""

import re

import numpy as np
import pytest
from in_cpython import *
from in_cpython import counts_since

import dlpack_web as dlw
import dlpack_web_memory as memory_driver

USAGE = {"STORAGE": 128, "COPY_SRC": 4, "COPY_DST": 8, "UNIFORM": 64, "MAP_READ": 1}


class _Counts:
    before = None
    staged = gpu_bytes = 0


def _stage(self, what, copies, *args, stage=memory_driver.Device.stage):
    _Counts.staged += 1
    _Counts.gpu_bytes += sum(length for *_, length in copies)
    return stage(self, what, copies, *args)


memory_driver.Device.stage = _stage


def start_counting():
    _Counts.before, _Counts.staged, _Counts.gpu_bytes = dlw.webgpu.stats(), 0, 0


def counted():
    """copies, copied_bytes, gpu_bytes of reads, and map_async since then."""
    return counts_since(_Counts.before, _Counts.gpu_bytes, _Counts.staged)


def make_buffer(device, size, *flags):
    usage = sum(USAGE[name] for name in flags or ("STORAGE", "COPY_SRC", "COPY_DST"))
    return device.gpu.create_buffer(size, usage)


def write_buffer(device, buffer, raw):
    buffer.bytes[: len(raw)] = np.frombuffer(raw, "u1")


async def bytes_of(device, buffer, count):
    return buffer.bytes[:count].tobytes()


def has_canvases():
    return False


def image_of(pixels):
    pytest.skip("this GPU takes no images")


def lacks(example):
    return "this GPU compiles no WGSL"


def limit(holder, name):
    return holder.limits[name]


def has_feature(holder, name):
    return name in holder.features


def memory():
    pytest.skip("this GPU's memory is that of the program")


# --- shaders ------------------------------------------------------------------------------

SEE = re.compile(r"var<storage, (read|read_write)> x: array<(u32|vec[24]u|array.*)>;")
WORDS = {"u32": 1, "vec2u": 2, "vec4u": 4, "array<u32, 8>": 8}


def compiled(wgsl, entry):
    """The shaders of gpu_padding.py; the cases of others are skipped as they run."""
    found = SEE.search(wgsl)
    if found is None or "seen[0] +=" not in wgsl:
        return _skip
    return lambda groups, x, seen, k: _see(*found.groups(), x, seen, k)


def _skip(*_):
    pytest.skip("this GPU compiles no WGSL")


def _see(access, element, x, seen, k):
    shown, seen = x.view("u4"), seen.view("u4")
    count = shown.size // WORDS[element]
    shown = shown[: count * WORDS[element]]
    seen[0] += count + 1000 * k.view("u4")[0]
    seen[1 : 1 + shown.size] += shown
    if access == "read_write":
        shown[...] = ~shown
