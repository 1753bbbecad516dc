"""Random arrays and random structs: what is true of every one of them."""

import ctypes
from ctypes import byref, c_void_p, py_object

import numpy as np
import pytest
from bridge import lend
from conftest import DTYPES, arrays_of, examples
from forge import (
    READ_ONLY,
    SUBBYTE_PADDED,
    Forged,
    Legacy,
    Versioned,
    api_of,
    dims,
    versioned,
)

import dlpack_web as dlw
from dlpack_web import _core

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis has a native part")
st = hypothesis.strategies
settings = hypothesis.settings(
    max_examples=examples(300), deadline=None, derandomize=True
)

SUB_BYTE = [row for row in DTYPES if row["bits"] < 8]
NUMPYS = [row["name"] for row in DTYPES if row["numpy"] == "numpy"]


# --- arrays ---------------------------------------------------------------------------


@st.composite
def views(draw):
    """An array of up to five axes, sliced, reversed, transposed and broadcast."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    array = np.arange(int(np.prod(shape, dtype=int))).astype(
        draw(st.sampled_from(NUMPYS))
    )
    array = array.reshape(shape)
    steps = st.sampled_from([None, 1, 2, 3, -1, -2])
    slices = st.builds(
        slice, st.none() | st.integers(-6, 6), st.none() | st.integers(-6, 6), steps
    )
    array = array[(*(draw(slices) for _ in shape), ...)]
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(0, 3)), *array.shape))
    return array


@settings
@hypothesis.given(views(), st.sampled_from([dlw.from_dlpack, dlw.from_buffer]))
def test_any_view_is_shared_and_copied_right(array, make):
    with make(array) as tensor:
        for shared in arrays_of(tensor):
            np.testing.assert_array_equal(shared, array)
            assert shared.shape == array.shape
            assert not array.size or shared.ctypes.data == array.ctypes.data
        capsule = tensor.__dlpack__(max_version=(1, 0), copy=True)
        with dlw.from_dlpack(capsule) as copy:
            packed = np.asarray(copy)
        assert packed.flags.c_contiguous
        np.testing.assert_array_equal(packed, array)


# --- structs that are right -----------------------------------------------------------


@st.composite
def layouts(draw):
    """(shape, strides, elements before and behind element 0): axes in any order, with
    gaps, backwards or broadcast. Element 0 begins a byte, whatever the dtype."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    strides, before, behind, step = [0] * len(shape), 0, 0, 1
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = step * draw(st.sampled_from([1, 1, 2, -1, -2, 0]))
        reach = max(shape[axis] - 1, 0) * strides[axis]
        before, behind = before + max(-reach, 0), behind + max(reach, 0)
        step += abs(reach)
    return shape, strides, -(-before // 8) * 8, behind


@st.composite
def producers(draw):
    """A right struct of any dtype, flavour and version over random memory."""
    row = draw(st.sampled_from(DTYPES) | st.sampled_from(SUB_BYTE))
    lanes = draw(st.sampled_from([1, 1, 1, 1, 1, 2, 3, 7]))
    flavour = draw(st.sampled_from([Versioned, Versioned, Legacy]))
    fields = {"code": row["code"], "bits": row["bits"], "lanes": lanes}
    bits = row["bits"] * lanes
    if flavour is Versioned:
        flags = draw(st.sampled_from([0, READ_ONLY]))
        if row in SUB_BYTE and lanes == 1 and draw(st.booleans()):
            flags, bits = flags | SUBBYTE_PADDED, 8
        fields |= {"flags": flags, "minor": draw(st.integers(0, 9))}
    shape, strides, before, behind = draw(layouts())
    memory = np.random.default_rng(before).bytes(-(-(before + behind + 1) * bits // 8))
    memory = np.frombuffer(memory, np.uint8).copy()
    fields |= {"shape": shape, "strides": strides, "ndim": len(shape)}
    fields |= {"data": memory.ctypes.data, "byte_offset": before * bits // 8}
    producer = Forged(flavour=flavour, **fields)
    producer.memory = memory
    producer.dtype = row["name"] if lanes == 1 else f"{row['name']}x{lanes}"
    return producer


def read(tensor, padded):
    """The elements of a DLTensor in row-major order, as ints, by the standard's words:
    element n has the bits from n * bits on, the first bit is a byte's lowest."""
    bits = 8 if padded else tensor.bits * tensor.lanes
    shape, strides = (
        dims(each, tensor.ndim) for each in (tensor.shape, tensor.strides)
    )
    indices = list(np.ndindex(*shape or ()))
    places = [
        sum(i * s for i, s in zip(at, strides or (), strict=True)) for at in indices
    ]
    if not places:
        return []
    start, end = min(places) * bits // 8, -(-(max(places) + 1) * bits // 8)
    address = tensor.data + tensor.byte_offset + start
    number = int.from_bytes(ctypes.string_at(address, end - start), "little")
    return [number >> place * bits - start * 8 & (1 << bits) - 1 for place in places]


def meaning(tensor):
    """All that an exchange must keep."""
    struct = versioned(tensor.__dlpack__(max_version=(1, 0)))
    padded = bool(struct.flags & SUBBYTE_PADDED)
    assert tensor.padded == padded
    assert bool(struct.flags & READ_ONLY) == tensor.read_only
    facts = (tensor.dtype, tensor.itemsize, tensor.nbytes, tensor.shape, padded)
    return *facts, read(struct.dl_tensor, padded)


API = api_of(dlw.Tensor)


def exchange(tensor):
    """Out and in by the functions for C."""
    managed, made = c_void_p(), c_void_p()
    assert API.from_object(tensor, byref(managed)) == 0
    assert API.to_object(managed, byref(made)) == 0
    result = ctypes.cast(made, py_object).value
    ctypes.pythonapi.Py_DecRef(py_object(result))
    return result


SHARING = {
    "share": dlw.from_dlpack,
    "capsule": lambda t: dlw.from_dlpack(t.__dlpack__(max_version=(1, 0))),
    "legacy": lambda t: dlw.from_dlpack(t.__dlpack__()),
    "exchange": exchange,
    "handle": lambda t: _core._take(lend(t)),
}
COPYING = {
    "copy": lambda t: dlw.from_dlpack(t, copy=True),
    "legacy copy": lambda t: dlw.from_dlpack(t.__dlpack__(copy=True)),
}
WAYS = st.lists(st.sampled_from([*SHARING, *COPYING]), min_size=1, max_size=5)


def follow(tensor, way, said):
    """The tensor that comes of that way; whether it has memory of its own; and whether
    somebody said that it is read-only, as a legacy capsule cannot."""
    if tensor.padded and "legacy" in way:
        way = way.replace("legacy", "").strip() or "capsule"
    if said and way == "legacy":
        with pytest.raises(BufferError, match=r"before 1\.0"):
            tensor.__dlpack__()
        way = "capsule"
    if way in COPYING:
        return COPYING[way](tensor), True, False
    if way in ("capsule", "exchange"):
        said = tensor.read_only
    result = SHARING[way](tensor)
    assert tensor.size == 0 or result.strides == tensor.strides
    return result, False, said


@hypothesis.settings(settings, max_examples=examples(1000))
@hypothesis.given(producers(), WAYS, st.randoms(use_true_random=False))
def test_any_tensor_means_the_same_by_any_way(producer, ways, random):
    flags = 0 if producer.flavour is Legacy else producer.managed.flags
    padded = bool(flags & SUBBYTE_PADDED)
    described = producer.managed.dl_tensor
    expected = read(described, padded)
    tensor = dlw.from_dlpack(producer)
    assert tensor.dtype == producer.dtype
    assert tensor.padded == padded
    assert tensor.read_only == (producer.flavour is Legacy or bool(flags & READ_ONLY))
    bits = 8 if padded else described.bits * described.lanes
    assert tensor.nbytes == -(-len(expected) * bits // 8)
    before = meaning(tensor)
    assert before[-1] == expected
    holders, lasting, copied = [tensor], [], False
    said = producer.flavour is Versioned and tensor.read_only
    for way in ways:
        tensor, copies, said = follow(tensor, way, said)
        copied |= copies
        assert meaning(tensor) == before
        (lasting if copied else holders).append(tensor)
    random.shuffle(holders)
    while holders:
        assert producer.deleted == 0
        holders.pop().release()
    assert producer.deleted == 1
    assert all(meaning(copy) == before for copy in lasting)


# --- structs that may be wrong --------------------------------------------------------

WIDE = st.sampled_from([0, 1, 2, -1, 2**31 - 1, 2**31, 2**62, -(2**62), 2**63 - 1])
SMALL = st.integers(-4, 8) | WIDE
DIMS = st.none() | st.lists(SMALL, min_size=3, max_size=3)
FIELDS = {
    "shape": DIMS,
    "strides": DIMS,
    "ndim": st.integers(-2, 3) | st.sampled_from([64, 65, 2**31 - 1, -(2**31)]),
    "data": st.sampled_from([None, 1, 2**40]),
    "byte_offset": st.sampled_from([1, 4, 8, 2**31, 2**63, 2**64 - 1]),
    "code": st.integers(0, 20) | st.just(255),
    "bits": st.sampled_from([0, 1, 2, 4, 6, 8, 12, 16, 32, 64, 128, 255]),
    "lanes": st.sampled_from([0, 1, 2, 3, 65535]),
    "device_type": st.sampled_from([0, 1, 2, 15, -1]),
}
VERSIONED = {
    "major": st.integers(0, 3),
    "minor": st.integers(0, 2**32 - 1),
    "flags": st.integers(0, 2**64 - 1),
}
KNOWN = {(row["code"], row["bits"]) for row in DTYPES}


@settings
@hypothesis.given(
    st.fixed_dictionaries({}, optional={**FIELDS, **VERSIONED}), st.booleans()
)
def test_any_struct_is_taken_or_refused_and_freed_once(fields, legacy):
    # shape and strides point to three int64s: more axes could not be read by anybody.
    hypothesis.assume(not 3 < fields.get("ndim", 2) <= 64)
    if legacy:
        fields = {name: fields[name] for name in fields if name not in VERSIONED}
    fields = {"shape": [1, 2, 3], "strides": [6, 3, 1], **fields}
    producer = Forged(flavour=Legacy if legacy else Versioned, **fields)
    try:
        tensor = dlw.from_dlpack(producer)
    except BufferError:
        assert producer.deleted == 1
        return
    assert producer.deleted == 0
    described = producer.managed.dl_tensor
    assert (described.code, described.bits) in KNOWN
    bits = 8 if tensor.padded else described.bits * described.lanes
    assert tensor.nbytes == -(-tensor.size * bits // 8)
    assert tensor.itemsize == -(-described.bits * described.lanes // 8)
    tensor.release()
    assert producer.deleted == 1
