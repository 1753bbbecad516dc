"""What only one framework has."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from frameworks import DTYPES, address

import dlpack_web as dlw


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def ml_dtypes():
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")


def test_torch_pairs_of_float4_are_vectors(torch):
    array = torch.zeros(2, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    with dlw.from_dlpack(array) as tensor:
        assert (tensor.dtype, tensor.shape, tensor.nbytes) == (
            "float4_e2m1fnx2",
            (2, 4),
            8,
        )
        back = torch.from_dlpack(tensor)
    assert (back.dtype, back.data_ptr()) == (array.dtype, array.data_ptr())


def test_torch_conjugated_views_are_refused(torch):
    """Its C functions would hand them out as they were before."""
    view = torch.tensor([1 + 2j, 3 - 4j]).conj()
    with pytest.raises(BufferError, match="conjugate"):
        dlw.from_dlpack(view)
    with dlw.from_dlpack(view.resolve_conj()) as tensor:
        assert tensor.numpy().tolist() == [1 - 2j, 3 + 4j]


def test_torch_subclasses_and_views(torch):
    class Mine(torch.Tensor):
        pass

    base = torch.arange(24.0).reshape(4, 6)
    for array in (base.as_subclass(Mine), base.T, base[1:, ::2]):
        with dlw.from_dlpack(array) as tensor:
            assert tensor.strides == tuple(array.stride())
            np.testing.assert_array_equal(tensor.numpy(), np.asarray(array))


def test_torch_without_memory_is_refused(torch):
    for array in (torch.eye(3).to_sparse(), torch.empty(2, device="meta")):
        with pytest.raises(RuntimeError):
            dlw.from_dlpack(array)


EXTENSION = [row for row in DTYPES if row["numpy"] == "ml_dtypes"]


@pytest.mark.parametrize("made", EXTENSION, ids=[row["name"] for row in EXTENSION])
def test_ml_dtypes_arrays_are_shared(ml_dtypes, note, made):
    """NumPy exports none of them: their memory is taken, and the dtype kept."""
    values = np.zeros((2, 3), getattr(ml_dtypes, made["name"]))
    values[1, 2] = 1
    with dlw.from_dlpack(values) as tensor:
        assert tensor.dtype == made["name"]
        assert tensor.padded == (made["bits"] < 8)
        assert address(tensor) == values.ctypes.data
        back = tensor.numpy()
        assert (back.dtype, back.ctypes.data) == (values.dtype, values.ctypes.data)
        back[0, 0] = 1
        assert values.tobytes() == ctypes.string_at(address(tensor), tensor.nbytes)
    note(SimpleNamespace(title="ml_dtypes"), "dtypes", made["name"], "shared")
    assert values[0, 0] != 0  # the one value of int1 but 0 is -1


@pytest.mark.parametrize("name", ["int4", "uint2", "float4_e2m1fn", "float6_e3m2fn"])
def test_packed_elements_become_ml_dtypes(ml_dtypes, name):
    kind = getattr(ml_dtypes, name)
    values = np.array([[1, 0, 1], [1, 1, 0]]).astype(kind)
    bits = next(row["bits"] for row in DTYPES if row["name"] == name)
    mask = 2**bits - 1
    number = sum((v & mask) << i * bits for i, v in enumerate(values.tobytes()))
    with dlw.empty((2, 3), name) as tensor:
        packed = number.to_bytes(tensor.nbytes, "little")
        ctypes.memmove(address(tensor), packed, tensor.nbytes)
        array = tensor.numpy()
    assert array.dtype == kind
    assert (array == values).all()
