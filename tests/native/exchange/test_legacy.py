"""Producers that speak DLPack before 1.0, which cannot say whether memory may be written."""

import numpy as np
import pytest
from forge import Forged, Legacy, legacy

import dlpack_web as dlw


class Array(np.ndarray):
    """An ndarray as NumPy before 2.1 exports it, whichever NumPy this is."""

    def __dlpack__(self, stream=None):
        if not self.flags.writeable:
            raise BufferError("Cannot export readonly array")
        return super().__dlpack__()


@pytest.fixture
def array():
    return np.arange(6.0).reshape(2, 3).view(Array)


class Both(Forged):
    """A legacy capsule over some memory, and a buffer, which may be of other memory."""

    def __init__(self, buffer):
        super().__init__(flavour=Legacy)
        self.buffer = self.memory if buffer is None else buffer

    def __buffer__(self, flags):
        if isinstance(self.buffer, BaseException):
            raise self.buffer
        return memoryview(self.buffer).cast("B")


def test_arrays_without_elements_are_not_read_only(array):
    for view in (array[:0], array[:, :0]):
        with dlw.from_dlpack(view) as tensor:
            assert not tensor.read_only


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[::-1, 1:]])
def test_the_producers_buffer_says_that_memory_may_be_written(array, view):
    with dlw.from_dlpack(view(array)) as tensor:
        assert not tensor.read_only
        np.asarray(tensor)[0, 0] = 7
        assert view(array)[0, 0] == 7
        assert legacy(tensor.__dlpack__()).dl_tensor.data is not None


def test_read_only_arrays_are_shared_all_the_same(array):
    array.flags.writeable = False
    for options in ({}, {"copy": False}, {"device": "cpu"}):
        with dlw.from_dlpack(array, **options) as tensor:
            assert tensor.read_only
            assert np.shares_memory(np.asarray(tensor), array)
    with dlw.from_dlpack(array, copy=True) as tensor:
        assert not tensor.read_only
        assert not np.shares_memory(np.asarray(tensor), array)


def test_other_refusals_of_read_only_arrays_stay(array):
    class Refusing(np.ndarray):
        def __dlpack__(self, **keywords):
            raise BufferError("it has a unit")

    array.flags.writeable = False
    with pytest.raises(BufferError, match="it has a unit"):
        dlw.from_dlpack(array.view(Refusing))


def test_read_only_arrays_of_other_dtypes_name_the_dtype():
    array = np.zeros(3, ">f4").view(Array)
    array.flags.writeable = False
    with pytest.raises(BufferError, match=r"cannot share dtype '>f4': .*newbyteorder"):
        dlw.from_dlpack(array)


def test_a_buffer_of_the_same_memory_settles_it():
    producer = Both(None)
    with dlw.from_dlpack(producer) as tensor:
        assert not tensor.read_only
    assert producer.deleted == 1


@pytest.mark.parametrize(
    "buffer",
    [bytearray(24), bytes(24), bytearray(), BufferError("no"), TypeError("no")],
    ids=["other memory", "read-only", "empty", "BufferError", "TypeError"],
)
def test_any_other_buffer_does_not(buffer):
    producer = Both(buffer)
    with dlw.from_dlpack(producer) as tensor:
        assert tensor.read_only
        with dlw.from_dlpack(tensor.__dlpack__()) as again:  # out as it came
            assert again.read_only
    assert producer.deleted == 1


def test_part_of_the_same_memory_does_not():
    producer = Both(None)
    producer.buffer = memoryview(producer.memory).cast("B")[:8]
    with dlw.from_dlpack(producer) as tensor:
        assert tensor.read_only


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_what_the_buffer_raises_beside_comes_through(error):
    producer = Both(error())
    with pytest.raises(error):
        dlw.from_dlpack(producer)
    assert producer.deleted == 1


def test_read_only_memory_of_the_same_address_stays_so():
    producer = Both(None)
    producer.buffer = memoryview(producer.memory).toreadonly()
    with dlw.from_dlpack(producer) as tensor:
        assert tensor.read_only
        assert legacy(tensor.__dlpack__()).dl_tensor.ndim == 2
