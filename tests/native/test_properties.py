"""Random arrays and random structs: what is true of every one of them."""

import numpy as np
import pytest
from forge import Forged, Legacy, Versioned

import dlpack_web as dlw

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis has a native part")
st = hypothesis.strategies
settings = hypothesis.settings(max_examples=300, deadline=None, derandomize=True)

CODES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


@st.composite
def views(draw):
    """An array of up to five axes, sliced, reversed, transposed and broadcast."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    array = np.arange(int(np.prod(shape, dtype=int))).astype(
        draw(st.sampled_from(CODES))
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
        for shared in (np.asarray(tensor), np.from_dlpack(tensor)):
            np.testing.assert_array_equal(shared, array)
            assert shared.shape == array.shape
            assert not array.size or shared.ctypes.data == array.ctypes.data
        capsule = tensor.__dlpack__(max_version=(1, 0), copy=True)
        with dlw.from_dlpack(capsule) as copy:
            packed = np.asarray(copy)
        assert packed.flags.c_contiguous
        np.testing.assert_array_equal(packed, array)


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
    "bits": st.sampled_from([0, 1, 4, 6, 8, 12, 16, 32, 64, 128, 255]),
    "lanes": st.sampled_from([0, 1, 2, 65535]),
    "device_type": st.sampled_from([0, 1, 2, 15, -1]),
}
VERSIONED = {"major": st.integers(0, 3), "flags": st.integers(0, 2**64 - 1)}


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
    assert tensor.nbytes == tensor.size * tensor.itemsize
    tensor.release()
    assert producer.deleted == 1
