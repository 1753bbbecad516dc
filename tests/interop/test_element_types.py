"""Every dtype of DLPack, there and back: the same bytes under the same name."""

import ctypes

import pytest
from frameworks import ALL, DTYPES, TITLE, address

import dlpack_web as dlw


def fill(tensor):
    """Distinct bytes, which booleans cannot have."""
    size = tensor.nbytes
    pattern = [i % 2 for i in range(size)] if tensor.dtype == "bool" else range(size)
    ctypes.memmove(address(tensor), bytes(pattern), size)
    return bytes(pattern)


def makes(kind):
    return kind.takes if kind.makes is None else kind.makes


def words(kind, dtype):
    if dtype in kind.takes:
        return "shared" if kind.shares else "copied"
    if dtype in kind.narrows:
        return f"becomes {kind.narrows[dtype]}"
    if dtype in kind.misreads:
        return "misread"
    return "to dlpack-web only" if dtype in makes(kind) else "refused"


# PyTorch warns of its complex32.
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf")


@pytest.mark.parametrize("dtype", DTYPES)
def test_our_dtype_goes_there_and_back(framework, note, dtype):
    with dlw.empty((2, 3), dtype) as tensor:
        if dtype in framework.narrows:
            array = framework.from_dlpack(tensor)
            assert framework.dtype_name(array) == framework.narrows[dtype]
        elif dtype in framework.misreads:
            with dlw.from_dlpack(framework.from_dlpack(tensor)) as again:
                assert again.shape == tensor.shape
                assert again.dtype != dtype
        elif dtype not in framework.takes:
            with pytest.raises(framework.refusal):
                framework.from_dlpack(tensor)
        else:
            pattern = fill(tensor)
            array = framework.from_dlpack(tensor)
            assert framework.dtype_name(array) in (dtype, None)
            with dlw.from_dlpack(array) as again:
                assert (again.dtype, again.padded) == (dtype, False)
                assert address(again) == framework.address(array)
                assert (address(again) == address(tensor)) is framework.shares
                assert ctypes.string_at(address(again), again.nbytes) == pattern
    note(framework, "dtypes", dtype, words(framework, dtype))


@pytest.mark.parametrize(
    ("framework", "dtype"),
    [(kind, dtype) for kind in ALL for dtype in makes(kind)],
    indirect=["framework"],
    ids=lambda value: value if isinstance(value, str) else TITLE(value),
)
def test_their_dtype_is_known(framework, dtype):
    array = framework.zeros((2, 3), dtype)
    with dlw.from_dlpack(array) as tensor:
        assert (tensor.dtype, tensor.padded) == (dtype, False)
        assert address(tensor) == framework.address(array)
