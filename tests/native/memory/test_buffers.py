"""Buffers as no exporter should give them, and the limits of those that it may."""

import re

import numpy as np
import pytest
from bridge import lend
from buffer_forge import ForgedBuffer
from conftest import OLD_NUMPY

import dlpack_web as dlw
from dlpack_web import _core


def test_what_is_taken_is_released_once():
    exporter = ForgedBuffer()
    tensor = dlw.from_buffer(exporter)
    assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (len(exporter.asked), exporter.released) == (1, 0)
    tensor.release()
    assert exporter.released == 1


def refuse(message, **fields):
    """With one request, whose buffer is released."""
    exporter = ForgedBuffer(**fields)
    with pytest.raises(BufferError, match=message):
        dlw.from_buffer(exporter)
    assert exporter.released == len(exporter.asked) == 1


@pytest.mark.parametrize("suboffsets", [(0, -1), (-1, 0), (8, 8)], ids=str)
def test_pointers_to_pointers_are_refused(suboffsets):
    refuse("suboffsets, pointers to pointers; copy it first", suboffsets=suboffsets)


def test_suboffsets_below_0_are_none():
    """PEP 3118: a negative one says that nothing is to be followed on that axis."""
    with dlw.from_buffer(ForgedBuffer(suboffsets=(-1, -1))) as tensor:
        assert np.asarray(tensor)[1, 2] == 5


def test_64_axes_are_taken_and_65_refused():
    ones = (1,) * 64
    with dlw.from_buffer(
        ForgedBuffer(ndim=64, shape=ones, strides=(4,) * 64, len=4)
    ) as tensor:
        assert tensor.shape == ones
    refuse("dimensions 65: 0 to 64", ndim=65, shape=(1,) * 65, strides=(4,) * 65)
    refuse("dimensions -1: 0 to 64", ndim=-1)


def test_missing_strides_are_row_major_and_a_missing_shape_is_refused():
    with dlw.from_buffer(ForgedBuffer(strides=None)) as tensor:
        assert tensor.strides == (3, 1)
        assert np.asarray(tensor)[1, 0] == 3
    refuse("invalid shape", shape=None, strides=None)
    refuse("invalid shape", shape=None)


@pytest.mark.parametrize("stride", [2, 6, -2, 13])
def test_steps_are_whole_elements(stride):
    refuse(f"axis 0 is {stride} bytes, no multiple", strides=(stride, 4))
    refuse(f"axis 1 is {stride} bytes, no multiple", strides=(12, stride))
    for shape in ((1, 3), (0, 3)):
        length = 4 * shape[0] * shape[1]
        fields = {"shape": shape, "strides": (stride, 4), "len": length}
        with dlw.from_buffer(ForgedBuffer(**fields)) as tensor:
            assert tensor.shape == shape


def test_without_elements_no_step_is_judged():
    fields = {"shape": (3, 0), "strides": (13, 4), "len": 0}
    with dlw.from_buffer(ForgedBuffer(**fields)) as tensor:
        assert tensor.shape == (3, 0)


@pytest.mark.parametrize(
    ("format_", "itemsize"),
    [(b"f", 0), (b"f", 3), (b"f", 32), (b"f", 17), (b"d", 1), (b"i", 16), (b"?", 2)],
)
def test_formats_of_another_size_are_refused(format_, itemsize):
    refuse(
        re.escape(f"format '{format_.decode()}' with items of {itemsize} bytes"),
        format=format_,
        itemsize=itemsize,
    )


def test_a_missing_format_is_of_bytes():
    fields = {"format": None, "itemsize": 1, "shape": (24,), "strides": (1,), "ndim": 1}
    with dlw.from_buffer(ForgedBuffer(**fields)) as tensor:
        assert tensor.dtype == "uint8"
        assert bytes(np.asarray(tensor)[4:8]) == b"\0\0\x80\x3f"


def test_read_only_is_what_the_exporter_says():
    for readonly in (0, 1):
        with dlw.from_buffer(ForgedBuffer(readonly=readonly)) as tensor:
            assert tensor.read_only == bool(readonly)


def test_what_is_unaligned_is_refused():
    fields = ForgedBuffer().given | {"shape": (1, 3), "strides": (12, 4), "len": 12}
    for past in (1, 2, 3):
        refuse("not aligned to 4 bytes", **(fields | {"buf": fields["buf"] + past}))


class Both(ForgedBuffer):
    """A buffer that is refused, and a capsule that says what was meant."""

    def __dlpack__(self, **keywords):
        return np.arange(3, dtype=np.int16).__dlpack__(**keywords)


def test_a_capsule_says_what_a_refused_buffer_does_not():
    """JavaScript, and asarray(), take either: NumPy exports more dtypes so."""
    exporter = Both(suboffsets=(0, 0))
    handle = lend(exporter)
    # A legacy capsule, as of NumPy before 2.1, has the buffer asked whether it may be written.
    assert exporter.released == 1 + OLD_NUMPY
    with _core._take(handle) as tensor:
        assert tensor.dtype == "int16"
