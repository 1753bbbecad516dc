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


class Scalar(np.float32):
    """A scalar as numpy#32029 has it: `__dlpack__` exports a read-only array of shape ()."""

    def __dlpack__(self, **keywords):
        array = np.asarray(np.float32(self))
        array.flags.writeable = False
        return array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.skipif(OLD_NUMPY, reason="NumPy before 2.1 exports no read-only array")
@pytest.mark.parametrize("copy", [None, True, False])
def test_scalars_with_dlpack_are_read_only_tensors(copy):
    with dlw.from_dlpack(Scalar(2.5), copy=copy) as tensor:
        assert (tensor.shape, tensor.dtype, float(tensor)) == ((), "float32", 2.5)
        assert tensor.read_only == (copy is not True)


def test_scalars_of_this_numpy():
    """Shared where they export themselves, else refused with what to do."""
    scalar = np.float32(2.5)
    if hasattr(scalar, "__dlpack__"):
        with dlw.from_dlpack(scalar) as tensor:
            assert (tensor.shape, float(tensor), tensor.read_only) == ((), 2.5, True)
        return
    with pytest.raises(AttributeError, match=r"use from_buffer\(x\)"):
        dlw.from_dlpack(scalar)
    with dlw.from_buffer(scalar) as tensor:
        assert (tensor.shape, float(tensor), tensor.read_only) == ((), 2.5, True)
