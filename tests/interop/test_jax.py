"""What only JAX has: alignment, immutability, jit, sub-byte arrays of its own."""

import numpy as np
import pytest
from frameworks import address, aligned

import dlpack_web as dlw

jax = pytest.importorskip("jax", reason="jax is not installed")
from_dlpack = jax.dlpack.from_dlpack


def unaligned():
    return aligned(np.arange(8, dtype=np.float32))[1:]


def test_memory_of_empty_is_aligned_enough():
    with dlw.empty((3, 5)) as tensor:
        assert from_dlpack(tensor, copy=False).unsafe_buffer_pointer() == address(
            tensor
        )


def test_unaligned_memory_is_copied_unless_forbidden():
    values = unaligned()
    with dlw.from_dlpack(values) as tensor:
        array = from_dlpack(tensor)
        assert array.unsafe_buffer_pointer() != values.ctypes.data
        assert array.tolist() == values.tolist()
        with pytest.raises((ValueError, RuntimeError), match="aligned"):
            from_dlpack(tensor, copy=False)


def test_compiled_functions_take_our_memory():
    with dlw.from_dlpack(aligned(np.arange(3.0))) as tensor:
        doubled = jax.jit(lambda x: x * 2)(from_dlpack(tensor))
    with dlw.from_dlpack(doubled) as tensor:
        assert tensor.numpy().tolist() == [0, 2, 4]
        assert not tensor.numpy().flags.writeable


def test_copy_of_an_array_is_another_array():
    """JAX copies, and says that its copy is read-only as well."""
    array = jax.numpy.arange(3.0)
    with dlw.from_dlpack(array, copy=True) as tensor:
        assert address(tensor) != array.unsafe_buffer_pointer()
        assert tensor.read_only


def test_arrays_of_float4_arrive_packed():
    values = [[0.5, 1, 1.5], [2, 3, -1]]
    array = jax.numpy.array(values, "float4_e2m1fn")
    with dlw.from_dlpack(array) as tensor:
        assert (tensor.nbytes, tensor.padded) == (3, False)
        assert tensor.numpy().astype(float).tolist() == values


@pytest.mark.parametrize("name", ["int4", "uint2", "float6_e2m3fn"])
def test_other_small_dtypes_are_refused_by_jax(name):
    with pytest.raises(RuntimeError, match="no DLPack equivalent"):
        dlw.from_dlpack(jax.numpy.zeros(3, name))


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn"])
def test_packed_elements_are_no_bytes_of_a_buffer(name):
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        dlw.from_buffer(jax.numpy.ones(6, name))
