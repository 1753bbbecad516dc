"""What only NumPy has: views and subclasses, weak references, results written into us."""

import weakref

import numpy as np
import pytest
from frameworks import OLD_NUMPY

import dlpack_web as dlw

WRITABLE = [np.asarray, dlw.Tensor.numpy]
if not OLD_NUMPY:  # which makes read-only arrays of all that it takes
    WRITABLE.append(np.from_dlpack)


class Array(np.ndarray):
    """An ndarray that can be weakly referenced."""


def test_arrays_live_as_long_as_their_tensor():
    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    tensor = dlw.from_dlpack(array)
    del array
    view = np.from_dlpack(tensor)[2:]
    tensor.release()
    assert alive() is not None
    assert view.tolist() == [2, 3, 4, 5]
    del view
    assert alive() is None


@pytest.mark.parametrize("take", WRITABLE)
def test_results_are_written_into_our_memory(take):
    with dlw.empty((2, 3), "float64") as tensor:
        np.multiply(np.ones((2, 3)), 3, out=take(tensor))
        assert tensor.numpy().tolist() == [[3.0] * 3] * 2


def test_memory_on_disk_is_shared(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(6.0))
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    with dlw.from_dlpack(mapped) as tensor:
        assert tensor.read_only
        assert tensor.numpy().ctypes.data == mapped.ctypes.data
