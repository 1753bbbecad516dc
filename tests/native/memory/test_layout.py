"""wasm/layout.c at its limits: the ends of memory, and as many axes as there can be.

Nothing here reads the memory that it describes: there is none at those addresses.
"""

import ctypes
import sys

import pytest
from bridge import function, scratch, struct_of
from forge import WEBGPU, Forged

import dlpack_web as dlw
from dlpack_web import _core

BITS = 8 * ctypes.sizeof(ctypes.c_void_p)
# The upper half of 64 bits belongs to the kernel; programs of 32 bits may have it all.
END = 2**63 - 1 if BITS == 64 else 2**32
UINT8 = {"code": 1, "bits": 8}
UINT8_PACKED = 1 | 8 << 8 | 1 << 16

host_memory = pytest.mark.skipif(
    sys.platform == "emscripten", reason="memory ends where wasm's does at that moment"
)


def taken(**fields):
    """Whether the struct is taken, or refused as beyond the address space."""
    producer, words = Forged(**(UINT8 | fields)), ""
    try:
        dlw.from_dlpack(producer).release()
    except BufferError as error:
        words = str(error)
    assert producer.deleted == 1
    assert words == "" or "reach beyond the address space" in words
    return words == ""


@host_memory
def test_memory_may_reach_the_end_of_the_address_space():
    for fields in ({"strides": (3, 1)}, {"strides": None}):
        assert taken(data=END - 6, **fields)
        assert not taken(data=END - 5, **fields)
    assert taken(data=END - 6 - 100, byte_offset=100)
    assert not taken(data=END - 6 - 100, byte_offset=101)


@host_memory
def test_the_byte_of_a_part_of_elements_counts():
    """Of 4 bits and of 6, of which the last ones end within a byte."""
    for bits, code, count, size in [(4, 0, 5, 3), (6, 15, 3, 3), (6, 15, 4, 3)]:
        for strides in ((1,), None):
            fields = {"bits": bits, "code": code, "ndim": 1, "shape": (count,)}
            fields["strides"] = strides
            assert taken(data=END - size, **fields)
            assert not taken(data=END - size + 1, **fields)


@host_memory
def test_memory_may_begin_at_the_lowest_address():
    backwards = {"ndim": 1, "shape": (6,), "strides": (-1,)}
    assert taken(data=5, **backwards)
    assert not taken(data=4, **backwards)
    assert taken(data=2, byte_offset=3, **backwards)
    assert not taken(data=2, byte_offset=2, **backwards)


@host_memory
@pytest.mark.skipif(BITS == 32, reason="all 32 bits can be addresses")
def test_element_0_is_within_the_address_space():
    """Also where the elements go down from it."""
    backwards = {"ndim": 1, "shape": (6,), "strides": (-1,)}
    assert taken(data=END - 1, **backwards)
    assert not taken(data=END, **backwards)
    assert not taken(data=2**64 - 2, **backwards)


def test_an_offset_does_not_wrap_around():
    """Memory that begins with `data` never lies below it."""
    top = 2**BITS
    assert not taken(data=4096, byte_offset=2**64 - 1024)
    assert not taken(data=top - 8, byte_offset=8 + 4096)


def test_the_memory_of_a_gpu_is_counted_from_its_own_start():
    """A handle is no address, and 64 bits are for every machine."""
    where = {"device_type": WEBGPU, "data": 2**BITS - 1}
    backwards = {"ndim": 1, "shape": (6,), "strides": (-1,)}
    assert taken(byte_offset=0, **where)
    assert taken(byte_offset=2**63 - 1 - 6, **where)
    assert not taken(byte_offset=2**63 - 6, **where)
    assert taken(byte_offset=5, **where, **backwards)
    assert not taken(byte_offset=4, **where, **backwards)
    assert not taken(byte_offset=2**64 - 1, **where)


def test_every_step_of_a_span_is_checked_for_overflow():
    far = 2**62
    for shape, strides in [
        ((2, 2), (far, far)),  # their sum
        ((2, 2), (-far, -far)),
        ((2, 2, 2), (far, far, far)),
        ((2**40,), (2**40,)),  # a product
        ((5,), (far,)),  # one of a small factor, which wraps around to 0
        ((5,), (-far,)),
        ((2,), (far,)),  # in bits
        ((2,), (-far,)),
    ]:
        fields = {"ndim": len(shape), "shape": shape, "strides": strides}
        assert not taken(**fields)
        assert not taken(device_type=WEBGPU, data=7, byte_offset=far, **fields)


def test_sizes_are_elements_whose_bits_64_bits_can_count():
    """All are at one place: only their number is too large."""
    for elements, fits in [(2**59, True), (2**60 - 1, True), (2**60, False)]:
        extents = {"ndim": 1, "shape": (elements,), "strides": (0,)}
        assert taken(device_type=WEBGPU, data=7, **extents) == fits


def test_every_extent_counts():
    """2 as well: of as many of them there is less memory than elements."""
    for extent, axes in [(2, 62), (3, 40), (2**31, 3)]:
        with pytest.raises(BufferError, match="address space"):
            _core._empty((extent,) * axes, UINT8_PACKED, False)


def test_bits_behind_packed_elements_show_nothing_of_others():
    """Memory that others filled is used again: the last byte of it, too."""
    for count in (1, 3, 7):
        for _ in range(20):
            with dlw.empty(8, "uint8") as filled:
                memoryview(filled)[:] = b"\xff" * 8
            with dlw.empty(count, "uint4") as tensor:
                last = memoryview(_core._raw(tensor)[0])[count // 2]
                assert last >> 4 == 0


# --- axes -----------------------------------------------------------------------------

AXES = 64


@pytest.mark.parametrize("count", [AXES, AXES + 1, 200])
def test_what_is_said_in_tuples_has_64_axes_at_most(count):
    ones, last = (1,) * count, (1,) * (count - 1) + (3,)
    calls = [
        lambda: _core._view(dlw.empty(3, "uint8"), last, ones, 0),
        lambda: _core._empty(last, UINT8_PACKED, False),
    ]
    if hasattr(_core, "_wrap"):
        calls.append(lambda: _core._wrap(7, 0, last, ones, UINT8_PACKED, 0, 0, 0))
        calls.append(lambda: _core._wrap(7, 0, last, None, UINT8_PACKED, 0, 0, 0))
    for call in calls:
        if count <= AXES:
            assert call().shape == last
        else:
            with pytest.raises(BufferError, match=f"dimensions {count}: 0 to 64"):
                call()


def test_numbers_behind_the_64th_axis_are_not_looked_at():
    """There is no room for them."""
    many = (1,) * AXES
    for extents in ((*many, "x"), (*many, 2**100), (*many, -1)):
        with pytest.raises(BufferError, match="dimensions 65"):
            _core._empty(extents, UINT8_PACKED, False)
        with pytest.raises(BufferError, match="dimensions 65"):
            _core._view(dlw.empty(3), extents, (*many, 1), 0)
    with pytest.raises(TypeError):
        _core._empty((*many[1:], "x"), UINT8_PACKED, False)


def test_javascript_has_room_for_64_axes():
    room = (ctypes.c_int64 * 129).from_address(scratch())
    room[:AXES] = [1] * (AXES - 1) + [3]
    empty = function("empty", ctypes.c_size_t, *[ctypes.c_int32] * 3)
    address = empty(AXES, UINT8_PACKED, 0)
    assert _core._take(struct_of(address)[1]).shape == (1,) * (AXES - 1) + (3,)
    assert empty(AXES + 1, UINT8_PACKED, 0) == 0
    with pytest.raises(BufferError, match="dimensions 65: 0 to 64"):
        _core._raise()
