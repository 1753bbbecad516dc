"""Packing whole and in chunks, as uploads do it, against NumPy."""

import itertools
import math
from ctypes import c_int64

import numpy as np
import pytest
from bridge import lend, release, scratch
from packing import chunk, chunks, packed, packed_dtype, vectors

import dlpack_web as dlw

CHUNK_BYTES = 4 << 20
WIDTHS = {1: "u1", 2: "i2", 4: "f4", 8: "c8", 16: "c16"}


def assert_packed(view):
    """Whole and in chunks, `view` becomes what NumPy makes of it."""
    expected = view.tobytes()
    assert packed(view, view.nbytes) == expected
    data = b"".join(chunks(view, packed_dtype(view.dtype), view.itemsize))
    assert data == expected


STEPS = [1, 1, 1, 2, 3, 4, -1, -1, -2, -5]


def random_slice(rng, extent):
    step = int(rng.choice(STEPS))
    if rng.random() < 0.7:
        return slice(None, None, step)
    first, last = sorted(rng.integers(0, extent, 2).tolist())
    if step > 0:
        return slice(first, last + 1, step)
    return slice(last, first - 1 if first > 0 else None, step)


def random_view(rng, array):
    """A part of an array, its axes reversed, strided, repeated and permuted at random."""
    view = array[tuple(random_slice(rng, extent) for extent in array.shape)]
    view = view.transpose(rng.permutation(view.ndim))
    if rng.random() < 0.3:  # a new axis somewhere, along which all is the same
        at = rng.integers(0, view.ndim + 1)
        view = np.expand_dims(view, at)
        shape = list(view.shape)
        shape[at] = rng.choice([2, 3, 20])
        view = np.broadcast_to(view, shape)
    return view


def random_array(rng, shape, width):
    raw = rng.integers(0, 256, (*shape, width), dtype=np.uint8)
    return raw.view(WIDTHS[width]).reshape(shape)


EXTENTS = [1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 64, 65, 100]


def random_shape(rng, most):
    """Up to 5 axes, and at most so many elements."""
    while True:
        shape = rng.choice(EXTENTS, rng.integers(1, 6)).tolist()
        if math.prod(shape) <= most:
            return shape


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("width", WIDTHS)
def test_random_views_are_packed_as_numpy_does(width, seed):
    rng = np.random.default_rng([width, seed])
    shape = random_shape(rng, 40_000)
    assert_packed(random_view(rng, random_array(rng, shape, width)))


# Around the sides of blocks, which are 16 bytes, and of tiles, which are 64 bytes wide
# and 64 elements high.
SIDES = (1, 3, 8, 15, 16, 17, 33, 64, 65, 130)


@pytest.mark.parametrize("width", WIDTHS)
def test_transposes_of_every_size_are_packed(width):
    rng = np.random.default_rng(width)
    for rows, columns in itertools.product(SIDES, SIDES):
        array = random_array(rng, (rows, columns), width)
        for view in (array.T, array[::-1].T, array[:, ::-1].T, array[:, ::2].T):
            assert packed(view, view.nbytes) == view.tobytes()


@pytest.mark.parametrize("width", WIDTHS)
def test_stacks_of_small_matrices_are_packed(width):
    rng = np.random.default_rng(width)
    for shape in itertools.product((2, 40), (2, 3, 8, 20), (2, 4, 8, 17)):
        array = random_array(rng, shape, width)
        for axes in itertools.permutations(range(3)):
            assert_packed(array.transpose(axes))
            assert_packed(array[::-1, :, ::-1].transpose(axes))


LAYOUTS = {  # of a picture of (rows, columns, 4)
    "planes": lambda a: a.transpose(2, 0, 1),
    "planes of 3": lambda a: a[..., :3].transpose(2, 0, 1),
    "columns of planes": lambda a: a.transpose(2, 1, 0),
    "one channel": lambda a: a[..., 1],
    "without alpha": lambda a: a[..., :3],
    "blue first": lambda a: a[..., 2::-1],
    "turned": lambda a: a.transpose(1, 0, 2),
    "mirrored": lambda a: a[:, ::-1],
    "cut out": lambda a: a[100:-100, 50:-51, ::-1],
    "interleaved": lambda a: a.reshape(4, -1).T,
    "repeated": lambda a: np.broadcast_to(a[..., 2:3], a.shape),
}


@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pictures_that_no_cache_holds_are_packed(width, layout):
    """They are copied in several parts, for the caches' sake."""
    rng = np.random.default_rng(width)
    array = random_array(rng, (601, 703, 4), width)
    assert_packed(LAYOUTS[layout](array))


@pytest.mark.parametrize("lanes", [3, 5, 6, 7, 12, 13, 24, 32, 33, 40, 100, 700])
def test_vectors_of_every_width_are_packed(lanes):
    rng = np.random.default_rng(lanes)
    for _ in range(20):
        shape = random_shape(rng, 4000)
        raw = rng.integers(0, 256, (*shape, lanes), dtype=np.uint8)
        view = random_view(rng, raw.view(f"V{lanes}").reshape(shape))
        assert packed(vectors(view), view.nbytes) == view.tobytes()


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[::-1],
        lambda a: a.reshape(6, 1000, 1100)[:, :, ::-1].transpose(1, 0, 2),
        lambda a: np.broadcast_to(a[0], (4000, 1100)),
    ],
    ids=["transposed", "strided", "reversed", "permuted", "broadcast"],
)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_large_arrays_come_in_chunks(view, source):
    array = view(np.arange(6000 * 1100, dtype=source).reshape(6000, 1100))
    pieces = list(chunks(array, packed_dtype("float32"), 4))
    assert len(pieces) > 1
    widest = max(np.dtype(source).itemsize, 4)
    for piece in pieces:
        assert len(piece) // 4 * widest <= CHUNK_BYTES
    for piece in pieces[:-1]:
        assert len(piece) // 4 * widest > CHUNK_BYTES // 2
    result = np.frombuffer(b"".join(pieces), "float32").reshape(array.shape)
    np.testing.assert_array_equal(result, array)


def test_elements_without_gaps_are_not_copied():
    array = np.arange(5, dtype=np.float32)
    with dlw.from_dlpack(array) as tensor:
        handle = lend(tensor)
        assert chunk(handle, packed_dtype("f4"), 0) == 5
        assert c_int64.from_address(scratch()).value == array.ctypes.data
        assert chunk(handle, packed_dtype("f4"), 2) == 3
        assert c_int64.from_address(scratch()).value == array.ctypes.data + 8
        release(handle)


def test_chunks_of_many_axes_begin_where_the_last_one_ended():
    """A chunk is a range of one axis; all axes outside of it have an index."""
    x = np.arange(2 * 3 * 14 * 300 * 400, dtype="i4").reshape(2, 3, 14, 300, 400)
    view = x[::-1, ::2, ::2, ::2, ::2]
    assert view.nbytes > CHUNK_BYTES // 8
    wide = np.broadcast_to(view, (9, *view.shape))[..., ::-1]
    assert wide.nbytes > 2 * CHUNK_BYTES
    data = b"".join(chunks(wide, packed_dtype("i4"), 4))
    assert data == wide.tobytes()
