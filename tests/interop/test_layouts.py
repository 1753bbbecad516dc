"""Shapes and strides of every kind: shared, copied or refused, in both directions."""

import numpy as np
import pytest
from frameworks import address, aligned
from numpy.lib.stride_tricks import as_strided

import dlpack_web as dlw

BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
LAYOUTS = {
    "0 dimensions": lambda base: base[0, 0:1].reshape(()),
    "empty": lambda base: base[:0],
    "empty in the middle": lambda base: base.reshape(2, 3, 4)[:, :0],
    "unaligned": lambda base: base.reshape(-1)[1:7],
    "transposed": lambda base: base.T,
    "every other": lambda base: base[::2, 1::3],
    "reversed": lambda base: base[::-1],
    "broadcast": lambda base: as_strided(base[0], (3, 6), (0, 4)),
    "one row": lambda base: base[:1].T,
    "5 dimensions": lambda base: base.reshape(2, 1, 3, 2, 2),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(framework, note, name):
    expected = framework.layouts.get(name, "shared")
    values = LAYOUTS[name](aligned(BASE))
    with dlw.from_dlpack(values) as tensor:
        if expected == "refused":
            with pytest.raises(framework.refusal):
                framework.from_dlpack(tensor)
        else:
            array = framework.from_dlpack(tensor)
            check_elements(framework, array, values, expected)
            check_way_back(framework, array, tensor, expected)
    note(framework, "Layouts", name, expected)


def check_elements(framework, array, values, expected):
    if values.size:
        shared = framework.address(array) == values.ctypes.data
        assert shared is (expected == "shared")
    np.testing.assert_array_equal(framework.numpy(array), values)


def check_way_back(framework, array, tensor, expected):
    """The strides of an axis with one element, or of no elements, say nothing; those of a
    copy are its maker's."""
    with dlw.from_dlpack(array) as again:
        assert again.shape == tensor.shape
        if tensor.size:
            assert address(again) == framework.address(array)
        if tensor.size and expected == "shared":
            strides = zip(again.strides, tensor.strides, tensor.shape, strict=True)
            assert all(ours == theirs for theirs, ours, n in strides if n > 1)
