"""Every dtype of tests/dtypes.json: passed on with its bytes and its name."""

import ctypes

import pytest
from frameworks import ALL, DTYPES, REFUSAL, address

import dlpack_web as dlw


def fill(tensor):
    """Distinct bytes, which booleans cannot have."""
    size = tensor.nbytes
    pattern = [i % 2 for i in range(size)] if tensor.dtype == "bool" else range(size)
    ctypes.memmove(address(tensor), bytes(pattern), size)
    return bytes(pattern)


def test_our_dtype_goes_there_and_back(framework, note, row):
    name = row["name"]
    with dlw.empty((2, 3), name) as tensor:
        if name in framework.lacks:
            with pytest.raises(REFUSAL):
                framework.from_dlpack(tensor)
        else:
            pattern = fill(tensor)
            array = framework.from_dlpack(tensor)
            assert framework.dtype_name(array) in (name, None)
            with dlw.from_dlpack(array) as again:
                assert again.dtype == name
                assert address(again) == address(tensor) == framework.address(array)
                assert ctypes.string_at(address(again), again.nbytes) == pattern
    note(framework, "dtypes", name, "refused" if name in framework.lacks else "shared")


MADE = [
    pytest.param(kind, row, id=f"{kind.title}-{row['name']}")
    for kind in ALL
    for row in DTYPES
    if kind.can_make(row["name"])
]


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(("framework", "made"), MADE, indirect=["framework"])
def test_their_dtype_is_known(framework, made):
    array = framework.zeros((2, 3), made["name"])
    with dlw.from_dlpack(array) as tensor:
        assert tensor.dtype == made["name"]
        assert tensor.nbytes == 6 * made["itemsize"]
        assert address(tensor) == framework.address(array)
