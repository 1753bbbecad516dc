"""Converting on the way to a GPU, against NumPy."""

import gc
import sys

import numpy as np
import pytest
from bridge import lend, release
from conftest import IN_PYODIDE
from forge import Forged
from packing import BFLOAT16, chunk, chunks, converted, packed_dtype

import dlpack_web as dlw
from dlpack_web import _core

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 65504, 65519.99, 65520, 1e-7]
SPECIAL += [65536, -65536, 65535.99, 65568, 131008]
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


def nans32():
    """float32 NaNs, as bits: every upper half, and lower halves around its end."""
    upper = np.arange(0x7F80, 0x8000, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x1FFF, 0x2000, 0x7FFF, 0x8000, 0xFFFF], np.uint32)
    bits = (upper[:, None] | lower).reshape(-1)
    bits = bits[bits != 0x7F800000]  # infinity
    return np.concatenate([bits, bits | 0x80000000])


def cut_nans(bits, dropped, infinity):
    """Sign and the upper bits of the payload; 1 where those are 0."""
    kept = (bits & 0x7FFFFFFF) >> dropped & 0x7FFF
    return (bits >> 16 & 0x8000) | kept + (kept == infinity)


def test_float16_keeps_what_fits_of_a_nan():
    bits = nans32()
    floats = bits.view(np.float32)
    result = converted(floats, np.float16).view(np.uint16)
    np.testing.assert_array_equal(result, cut_nans(bits, 13, 0x7C00))
    with np.errstate(invalid="ignore"):
        numpy = floats.astype(np.float16).view(np.uint16)
    # NumPy's own conversion does the same, and Pyodide has no other. A processor that
    # has one, of which NumPy may make use elsewhere, makes signalling NaNs quiet ones.
    same = np.full(bits.shape, IN_PYODIDE) | (bits & 0x400000 != 0)
    np.testing.assert_array_equal(result[same], numpy[same])
    kept = (result & 0x1FF != 1) & ~same
    np.testing.assert_array_equal(result[kept] | 0x200, numpy[kept] | 0x200)


def test_bfloat16_keeps_what_fits_of_a_nan():
    bits = nans32()
    data = b"".join(chunks(bits.view(np.float32), BFLOAT16, 2))
    result = np.frombuffer(data, np.uint16)
    np.testing.assert_array_equal(result, cut_nans(bits, 16, 0x7F80))


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_every_16_bit_float_comes_back(target):
    """NaNs with their payload, signalling ones as well."""
    bits = np.arange(2**16, dtype=np.uint16)
    dtype = np.dtype("V2", metadata={"dlpack": "bfloat16"})
    raw = bits.view("f2" if target == "float16" else dtype)
    wide = converted(raw, np.float32)
    if target == "float16":
        same = np.full(bits.shape, IN_PYODIDE) | ~np.isnan(raw) | (bits & 0x200 != 0)
        numpy = raw.astype(np.float32)
        np.testing.assert_array_equal(wide.view("u4")[same], numpy.view("u4")[same])
        back = converted(wide, np.float16).tobytes()
    else:
        back = b"".join(chunks(wide, BFLOAT16, 2))
    assert back == bits.tobytes()


def test_float64_nans_stay_nans():
    """What they keep is for the processor to say; WebAssembly leaves it open."""
    upper = np.arange(0x7FF0, 0x8000, dtype=np.uint64) << 48
    lower = np.uint64(1) << np.arange(0, 48, dtype=np.uint64)
    bits = (upper[:, None] | lower).reshape(-1)
    bits = np.concatenate([bits, bits | np.uint64(1 << 63)])
    doubles = bits.view(np.float64)
    result = converted(doubles, np.float32)
    assert np.isnan(result).all()
    if not IN_PYODIDE:
        with np.errstate(invalid="ignore"):
            numpy = doubles.astype(np.float32)
        np.testing.assert_array_equal(result.view("u4"), numpy.view("u4"))


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


@pytest.mark.skipif("sys.platform == 'emscripten'", reason="blocks are not counted")
def test_an_element_that_does_not_fit_leaves_nothing_behind():
    with dlw.from_dlpack(np.array([1, 2**40])) as tensor:

        def misfits(times):
            for _ in range(times):
                with pytest.raises(BufferError, match="element 1 of the int64 tensor"):
                    _core._convert(tensor, 0 | 32 << 8 | 1 << 16, False)
            gc.collect()
            return sys.getallocatedblocks()

        misfits(20)
        before = misfits(20)
        assert misfits(500) < before + 100


def test_what_does_not_fit_gives_no_chunk():
    """0, with an error, whatever number was converted before it."""
    handle = lend(dlw.from_dlpack(np.array([1, 2, 2**40])))
    assert chunk(handle, packed_dtype("i4"), 0) == 0
    with pytest.raises(BufferError):
        _core._raise()
    release(handle)
