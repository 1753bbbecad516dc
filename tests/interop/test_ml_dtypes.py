"""Arrays of ml_dtypes, which NumPy itself neither exports nor imports."""

import ctypes
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from frameworks import ROWS, address

import dlpack_web as dlw

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
EXTENSION = [row for row in ROWS if row["numpy"] == "ml_dtypes"]
SMALL = [row for row in EXTENSION if row["bits"] < 8]


class Array(np.ndarray):
    """An ndarray that can be weakly referenced."""


def with_ids(rows):
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def zeros(row, shape=(2, 3)):
    return np.zeros(shape, getattr(ml_dtypes, row["name"])).view(Array)


@with_ids(EXTENSION)
def test_array_is_shared_there_and_back(note, row):
    array = zeros(row)
    with dlw.from_dlpack(array) as tensor:
        assert tensor.dtype == row["name"]
        assert tensor.padded == (row["bits"] < 8)
        assert address(tensor) == array.ctypes.data
        back = tensor.numpy()
        assert (back.dtype, back.ctypes.data) == (array.dtype, array.ctypes.data)
        array[1, 2] = back[0, 0] = 1
        assert array.tobytes() == ctypes.string_at(address(tensor), tensor.nbytes)
        assert back.tobytes() == array.tobytes()
    assert array[0, 0] != 0  # int1 has 0 and -1
    note(SimpleNamespace(title="ml_dtypes"), "dtypes", row["name"], "shared")


@with_ids(EXTENSION)
def test_strides_and_flags_are_kept(row):
    array = zeros(row, (4, 6))
    array.flags.writeable = False
    for view in (array.T, array[::-2, 1::3], array[:0], array[0, 0:1].reshape(())):
        with dlw.from_dlpack(view) as tensor:
            assert tensor.read_only
            back = tensor.numpy()
            assert (back.shape, back.dtype) == (view.shape, view.dtype)
            assert not back.flags.writeable
            if view.size:
                assert back.strides == view.strides
                assert back.ctypes.data == view.ctypes.data


@with_ids(EXTENSION)
def test_copy_is_asked_for_or_forbidden(row):
    array = zeros(row)
    with dlw.from_dlpack(array, copy=False) as tensor:
        assert address(tensor) == array.ctypes.data
    with dlw.from_dlpack(array, copy=True) as tensor:
        assert tensor.dtype == row["name"]
        assert not np.shares_memory(tensor.numpy(), array)


def test_memory_lives_until_the_last_holder():
    array = zeros(EXTENSION[0])
    alive = weakref.ref(array)
    tensor = dlw.from_dlpack(array)
    del array
    back = tensor.numpy()
    tensor.release()
    assert alive() is not None
    del tensor, back
    assert alive() is None


@with_ids(SMALL)
def test_packed_elements_are_unpacked_into_a_read_only_copy(row):
    bits, dtype = row["bits"], getattr(ml_dtypes, row["name"])
    values = np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype)
    mask = 2**bits - 1
    number = sum((v & mask) << i * bits for i, v in enumerate(values.tobytes()))
    with dlw.empty((2, 3), row["name"]) as tensor:
        packed = number.to_bytes(tensor.nbytes, "little")
        ctypes.memmove(address(tensor), packed, tensor.nbytes)
        array = tensor.numpy()
    assert array.dtype == dtype
    assert (array == values).all()
    assert not array.flags.writeable
