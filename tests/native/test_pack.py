"""Packing and converting in chunks, as uploads do it, against NumPy."""

import ctypes
import itertools
from ctypes import c_double, c_int32, c_int64, c_uint32

import numpy as np
import pytest
from bridge import function, lend, release, scratch
from forge import Forged

import dlpack_web as dlw
from dlpack_web import _core

CHUNK_BYTES = 8 << 20
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT16 = 4 | 16 << 8 | 1 << 16


chunk = function("chunk", c_int32, c_uint32, c_uint32, c_double)


def packed_dtype(dtype):
    dtype = np.dtype(dtype)
    return CODES[dtype.kind] | dtype.itemsize * 8 << 8 | 1 << 16


def chunks(x, dtype, itemsize):
    """The bytes of each chunk of `x` as elements of a (packed) dtype."""
    tensor = dlw.from_dlpack(x)
    handle, at = lend(tensor), 0
    try:
        while at < tensor.size:
            count = chunk(handle, dtype, at)
            if count == 0:
                _core._raise()
            address = c_int64.from_address(scratch()).value
            yield ctypes.string_at(address, count * itemsize)
            at += count
    finally:
        release(handle)
        tensor.release()


def converted(x, dtype):
    dtype = np.dtype(dtype)
    data = b"".join(chunks(x, packed_dtype(dtype), dtype.itemsize))
    return np.frombuffer(data, dtype).reshape(x.shape)


def views(seed):
    """An array of random numbers, sliced, reversed, transposed and broadcast at random."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 40, rng.integers(1, 5))
    shape[: max(0, len(shape) - 3)] = rng.integers(1, 4, max(0, len(shape) - 3))
    dtype = rng.choice(["u1", "i2", "f4", "i4", "f8", "c8", "c16"])
    array = rng.integers(0, 255, shape).astype(dtype)
    array = array[tuple(slice(None, None, rng.choice([1, 1, 2, 3, -1])) for _ in shape)]
    array = array.transpose(rng.permutation(array.ndim))
    if rng.random() < 0.3:
        array = np.broadcast_to(array, (3, *array.shape))
    return array


@pytest.mark.parametrize("seed", range(60))
def test_random_views_are_packed_as_numpy_does(seed):
    array = views(seed)
    np.testing.assert_array_equal(converted(array, array.dtype), array)
    with dlw.from_dlpack(array, copy=True) as copy:
        np.testing.assert_array_equal(np.asarray(copy), array)


# Around the sides of a tile, which are 16 elements.
SIDES = (1, 3, 4, 15, 16, 17, 31, 32, 33, 50)


@pytest.mark.parametrize("kind", ["f4", "f8", "u2"])
def test_transposes_of_every_size_are_packed(kind):
    for rows, columns in itertools.product(SIDES, SIDES):
        array = np.arange(2 * rows * columns, dtype=kind).reshape(2, rows, columns)
        for axes in itertools.permutations(range(3)):
            view = array.transpose(axes)
            with dlw.from_dlpack(view, copy=True) as copy:
                np.testing.assert_array_equal(np.asarray(copy), view)


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


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 65504, 65519.99, 65520, 1e-7]
SPECIAL += [2**-14, 2**-24, 2**-25, 2**-25 * 1.001, 3e38, 1e-45, 5.96e-8, 6.1e-5, 1e40]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    ("source", "target"),
    [("f8", "f4"), ("f4", "f2"), ("f2", "f4"), ("c16", "c8")],
)
def test_floats_are_rounded_as_numpy_does(source, target):
    rng = np.random.default_rng(1)
    # Every exponent and sign, so subnormal and infinite results as well.
    spread = rng.standard_normal(5001) * 10.0 ** rng.integers(-46, 40, 5001)
    array = np.concatenate([SPECIAL, spread, rng.standard_normal(5001)]).astype(source)
    if target == "f4" and source == "f2":
        array = np.arange(2**16, dtype=np.uint16).view("f2")
    for view in (array, array[::-2], array[:7], array[:1]):
        result = converted(view, target)
        np.testing.assert_array_equal(result, view.astype(target))
        np.testing.assert_array_equal(np.signbit(result.real), np.signbit(view.real))


def test_halfway_floats_go_to_the_even_neighbour():
    """Exactly between two float16 numbers, and one step of float32 to either side."""
    low = np.arange(0x7BFF, dtype=np.uint16)
    high = (low + 1).view(np.float16).astype(np.float32)
    middle = (low.view(np.float16).astype(np.float32) + high) / 2
    for array in (middle, np.nextafter(middle, high), np.nextafter(middle, -high)):
        result = converted(array, np.float16)
        np.testing.assert_array_equal(result, array.astype(np.float16))


def test_bfloat16_keeps_the_upper_half_of_float32():
    upper = np.arange(2**16, dtype=np.uint32) << 16
    for low, carry in ((0, 0), (0x7FFF, 0), (0x8001, 1)):
        floats = (upper | low).view(np.float32)
        data = b"".join(chunks(floats, BFLOAT16, 2))
        bits = np.frombuffer(data, np.uint16)
        finite = np.isfinite(floats)
        expected = (upper >> 16) + carry
        np.testing.assert_array_equal(bits[finite], expected[finite])
        nan = np.isnan(floats)
        widened = (bits.astype(np.uint32) << 16).view(np.float32)
        assert np.isnan(widened[nan]).all()
        assert np.isinf(widened[np.isinf(floats)]).all()


def test_ties_of_bfloat16_go_to_even():
    bits = np.array([0x3F808000, 0x3F818000, 0xBF808000], np.uint32)
    data = b"".join(chunks(bits.view(np.float32), BFLOAT16, 2))
    assert np.frombuffer(data, np.uint16).tolist() == [0x3F80, 0x3F82, 0xBF80]


def test_bfloat16_becomes_float32_exactly():
    bits = np.arange(2**16, dtype=np.uint16)
    raw = bits.view(np.dtype("V2", metadata={"dlpack": "bfloat16"}))
    floats = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(converted(raw, np.float32), floats)


@pytest.mark.parametrize(("source", "target"), [("i8", "i4"), ("u8", "u4")])
def test_integers_that_fit_are_narrowed(source, target):
    edges = np.iinfo(target)
    array = np.array([edges.min, -1 if source == "i8" else 1, 0, 7, edges.max], source)
    for view in (array, array[::-1], array[:4], array[::2]):
        np.testing.assert_array_equal(converted(view, target), view)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (2**31, "int64", "int32"),
        (-(2**31) - 1, "int64", "int32"),
        (2**32, "uint64", "uint32"),
        (2**64 - 1, "uint64", "uint32"),
    ],
)
@pytest.mark.parametrize("position", [0, 1, 4, 6, 2_000_000])
def test_integers_that_do_not_fit_are_told(value, source, target, position):
    array = np.zeros(position + 1, source)
    array[-1] = value
    message = (
        rf"element {position} of the {source} .* is {value}, which {target} cannot"
    )
    with pytest.raises(BufferError, match=message):
        converted(array, target)


def test_other_conversions_are_refused():
    with pytest.raises(BufferError, match=r"cannot convert float32 to int32.*astype"):
        converted(np.zeros(3, np.float32), np.int32)


def test_vectors_are_converted_lane_by_lane():
    array = np.arange(24, dtype=np.float64).reshape(4, 2, 3)
    producer = Forged(
        bits=64,
        lanes=3,
        shape=(2, 2),
        strides=(4, -1),
        byte_offset=24,
        data=array.ctypes.data,
    )
    data = b"".join(chunks(producer, packed_dtype("f4") & 0xFFFF | 3 << 16, 12))
    result = np.frombuffer(data, np.float32).reshape(2, 2, 3)
    np.testing.assert_array_equal(result, array[::2, ::-1])


def test_released_handles_are_refused():
    tensor = dlw.from_dlpack(np.zeros(3, np.float32))
    handle = lend(tensor)
    release(handle)
    assert chunk(handle, packed_dtype("f4"), 0) == 0
    with pytest.raises(dlw.ReleasedError):
        _core._raise()
