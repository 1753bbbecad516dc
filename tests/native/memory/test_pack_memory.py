"""Packing and converting at every address, next to memory that may not be touched.

These call the C functions themselves, compiled with a trap for undefined behaviour: an
element of ours is where its dtype wants it, but that is for import.c to say. One byte
read or written outside ends the process.
"""

import ctypes
import itertools
import math
import mmap
import shlex
import subprocess
import sysconfig
from ctypes import POINTER, byref, c_int64, c_uint32, c_void_p
from pathlib import Path

import numpy as np
import pytest
from forge import DLTensor
from numpy.lib.stride_tricks import as_strided
from test_pack import random_shape, random_view

WASM = Path(__file__).parents[3] / "wasm"
SOURCES = ("convert", "dtype", "layout", "pack", "runs", "tiles")
ENTRIES = """
#include "convert.h"
#include "pack.h"

void pack(void *target, const DLTensor *source, uint32_t element_bits) {
  dlw_pack(target, source, element_bits);
}
int64_t pack_some(void *target, const DLTensor *source, int64_t first, int64_t limit,
                  int64_t unit, const void **packed) {
  return dlw_pack_some(target, source, first, limit, unit, packed);
}
int64_t convert(void *target, const void *source, int64_t count, DLDataType from,
                DLDataType to) {
  int64_t lanes;
  return dlw_convert(dlw_converter_for(from, to, &lanes), target, source, count,
                     from.bits / 8, to.bits / 8);
}
"""


class DataType(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


@pytest.fixture(scope="module")
def core(tmp_path_factory, host_python):
    """The C functions, from a library of their own."""
    folder = tmp_path_factory.mktemp("pack")
    (folder / "entries.c").write_text(ENTRIES)
    link = shlex.split(sysconfig.get_config_var("LDSHARED"))
    flags = ["-std=c11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    flags += ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    files = [folder / "entries.c", *(WASM / f"{name}.c" for name in SOURCES)]
    target = folder / "pack.so"
    command = [*link, *flags, f"-I{WASM}", *files, "-o", target]
    subprocess.run(command, check=True, timeout=120)
    library = ctypes.CDLL(str(target))
    library.pack.restype = None
    library.pack.argtypes = (c_void_p, POINTER(DLTensor), c_uint32)
    library.pack_some.restype = c_int64
    library.pack_some.argtypes = (
        c_void_p,
        POINTER(DLTensor),
        c_int64,
        c_int64,
        c_int64,
        POINTER(c_void_p),
    )
    library.convert.restype = c_int64
    library.convert.argtypes = (c_void_p, c_void_p, c_int64, DataType, DataType)
    return library


UNTOUCHED = 0xA5


class Fenced:
    """Memory between two pages that may not be touched; `data` is all of it."""

    def __init__(self, size):
        page = mmap.PAGESIZE
        pages = -(-size // page)
        self.map = mmap.mmap(-1, (pages + 2) * page)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (c_void_p, ctypes.c_size_t, ctypes.c_int)
        for fence in (first, first + (pages + 1) * page):
            assert protect(fence, page, 0) == 0, ctypes.get_errno()
        self.data = np.frombuffer(self.map, np.uint8)[page : (pages + 1) * page]

    def place(self, nbytes, offset):
        """A block `offset` bytes behind the fence or, where that is None, right before
        the other. All around it is marked as untouched."""
        self.data[:] = UNTOUCHED
        start = self.data.size - nbytes if offset is None else offset
        self.block = slice(start, start + nbytes)
        return self.data[self.block]

    def assert_rest_untouched(self):
        assert (self.data[: self.block.start] == UNTOUCHED).all()
        assert (self.data[self.block.stop :] == UNTOUCHED).all()


@pytest.fixture(scope="module")
def source(host_python):
    return Fenced(1 << 18)


@pytest.fixture(scope="module")
def target(host_python):
    return Fenced(1 << 18)


def describe(view):
    """The struct of an array of raw elements, as many bytes as they have."""
    shape = (c_int64 * view.ndim)(*view.shape)
    strides = (c_int64 * view.ndim)(*(s // view.itemsize for s in view.strides))
    tensor = DLTensor(
        data=view.ctypes.data, device_type=1, ndim=view.ndim, code=1, bits=8
    )
    tensor.lanes = view.itemsize
    tensor.shape = ctypes.cast(shape, POINTER(c_int64))
    tensor.strides = ctypes.cast(strides, POINTER(c_int64))
    tensor.kept = shape, strides
    return tensor


def fill(rng, block, width, shape):
    """Random raw elements in a block of memory."""
    block[:] = rng.integers(0, 256, block.size, dtype=np.uint8)
    return block.view(f"V{width}").reshape(shape)


def assert_packed(core, view, source, target, offset):
    before = source.data.tobytes()
    room = target.place(view.nbytes, offset)
    core.pack(room.ctypes.data, byref(describe(view)), 8 * view.itemsize)
    assert room.tobytes() == view.tobytes()
    target.assert_rest_untouched()
    assert source.data.tobytes() == before


WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17, 24, 32, 33, 48, 100, 530)
OFFSETS = (None, *range(16))


@pytest.mark.parametrize("width", WIDTHS)
def test_random_views_at_every_address(core, source, target, width):
    rng = np.random.default_rng(width)
    for offset in OFFSETS * 4:
        shape = random_shape(rng, (1 << 16) // width)
        block = source.place(math.prod(shape) * width, offset)
        view = random_view(rng, fill(rng, block, width, shape))
        if view.nbytes <= target.data.size - 16:
            assert_packed(core, view, source, target, rng.choice(OFFSETS))


LENGTHS = (*range(1, 20), 31, 32, 33, 34, 63, 64, 65, 66)  # vectors are 16 bytes


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("step", [-4, -3, -2, -1, 0, 1, 2, 3, 4])
def test_runs_of_every_length(core, source, target, width, step):
    """The block ends (or begins) with the last element: no gap follows that."""
    rng = np.random.default_rng(width)
    for count, offset in itertools.product(LENGTHS, (None, 0)):
        length = 1 if step == 0 else (count - 1) * abs(step) + 1
        elements = fill(rng, source.place(length * width, offset), width, length)
        view = np.broadcast_to(elements, count) if step == 0 else elements[::step]
        assert view.shape == (count,)
        assert_packed(core, view, source, target, offset)


SIDES = (8, 15, 16, 17, 64, 65, 81)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 3, 12])
def test_tiles_of_every_size(core, source, target, width):
    rng = np.random.default_rng(width)
    for rows, columns, offset in itertools.product(SIDES, SIDES, (None, 0)):
        block = source.place(rows * columns * width, offset)
        array = fill(rng, block, width, (rows, columns))
        for view in (array.T, array[::-1].T, array[:, ::-1].T):
            assert_packed(core, view, source, target, offset)


@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_pixels_and_planes_of_every_size(core, source, target, channels):
    """Pixels overlap, are adjacent, or have a byte between: none follows the last."""
    rng = np.random.default_rng(channels)
    for count, step, offset in itertools.product(LENGTHS, (-1, 0, 1), OFFSETS[:4]):
        width = channels + step
        block = source.place((count - 1) * width + channels, offset)
        block[:] = rng.integers(0, 256, block.size, dtype=np.uint8)
        pixels = as_strided(block, (count, channels), (width, 1))
        plane = (block.size - count) // (channels - 1)
        planes = as_strided(block, (channels, count), (plane, 1))
        repeated = as_strided(block, (channels, count), (0, 1))
        for view in (pixels.T, pixels.T[::-1], planes.T, planes[::-1].T, repeated.T):
            assert_packed(core, view, source, target, offset)
        one = as_strided(block, (count,), (width,))
        assert_packed(core, one, source, target, offset)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 12, 16, 40])
def test_pieces_are_the_whole(core, source, target, width):
    rng = np.random.default_rng(width)
    for offset in OFFSETS * 3:
        shape = random_shape(rng, 20_000 // width)
        block = source.place(math.prod(shape) * width, offset)
        view = random_view(rng, fill(rng, block, width, shape))
        tensor, unit = describe(view), int(rng.choice((1, 2, 4)))
        limit = unit * int(rng.integers(1, 2 * view.size // unit + 2))
        if limit * width > target.data.size - 16:
            continue
        pieces, first, at = [], 0, c_void_p()
        while first < view.size:
            room = target.place(limit * width, offset)
            start = room.ctypes.data
            count = core.pack_some(start, byref(tensor), first, limit, unit, byref(at))
            assert 0 < count <= min(limit, view.size - first)
            assert count % unit == 0 or first + count == view.size
            pieces.append(ctypes.string_at(at.value, count * width))
            target.assert_rest_untouched()
            first += count
        assert b"".join(pieces) == view.tobytes()


KINDS = {"f": 2, "i": 0, "u": 1, "b": 4}  # b: bfloat16, by its bits
PAIRS = [("f8", "f4"), ("f4", "f2"), ("f4", "b2"), ("f2", "f4"), ("b2", "f4")]
PAIRS += [("i8", "i4"), ("u8", "u4")]


def data_type(name):
    return DataType(KINDS[name[0]], 8 * int(name[1]), 1)


@pytest.mark.parametrize(("wide", "narrow"), PAIRS, ids="->".join)
def test_conversions_at_every_address(core, source, target, wide, narrow):
    """As where everything is aligned, and in place as upload.c does it."""
    rng = np.random.default_rng(7)
    from_bytes, to_bytes = int(wide[1]), int(narrow[1])
    for count, offset in itertools.product((1, 3, 4, 5, 7, 8, 33), OFFSETS):
        values = rng.integers(0, 256, (count, from_bytes), dtype=np.uint8)
        if wide[0] in "iu":
            values[:, to_bytes - 1 :] = 0  # they fit
        aligned = np.empty((count, to_bytes), np.uint8)
        pair = data_type(wide), data_type(narrow)
        done = core.convert(aligned.ctypes.data, values.ctypes.data, count, *pair)
        assert done == count

        given = source.place(values.size, offset)
        given[:] = values.reshape(-1)
        room = target.place(aligned.size, offset)
        done = core.convert(room.ctypes.data, given.ctypes.data, count, *pair)
        assert done == count
        assert room.tobytes() == aligned.tobytes()
        target.assert_rest_untouched()
        source.assert_rest_untouched()

        both = target.place(max(values.size, aligned.size), offset)
        start = both[-values.size :] if to_bytes > from_bytes else both[: values.size]
        start[:] = values.reshape(-1)
        done = core.convert(both.ctypes.data, start.ctypes.data, count, *pair)
        assert done == count
        assert both[: aligned.size].tobytes() == aligned.tobytes()
        target.assert_rest_untouched()


@pytest.mark.parametrize("offset", OFFSETS)
def test_what_does_not_fit_is_found_at_every_address(core, source, target, offset):
    for kind, count in itertools.product("iu", range(1, 10)):
        for position in range(count):
            given = source.place(8 * count, offset)
            given[:] = 0
            given[8 * position + 5] = 1
            room = target.place(4 * count, offset)
            pair = data_type(f"{kind}8"), data_type(f"{kind}4")
            done = core.convert(room.ctypes.data, given.ctypes.data, count, *pair)
            assert done == position
            target.assert_rest_untouched()
