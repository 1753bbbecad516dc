"""Every dtype of tests/dtypes.json, in and out."""

import ctypes
import sys

import numpy as np
import pytest
from forge import Forged, dims, versioned

import dlpack_web as dlw


def sample(row):
    """2 x 3 elements with distinct bytes that are valid for the dtype."""
    if row["name"] == "bool":
        return np.array([[True, False, True], [False, False, True]])
    dtype = np.dtype(row["name"])
    if dtype.kind in "iu":
        edges = np.iinfo(dtype)
        return np.array([[edges.min, 1, 2], [3, 4, edges.max]], dtype)
    values = np.array([[-1.5, 0.0, np.inf], [2.5, -0.0, 1024.0]])
    return (values + 0.25j if dtype.kind == "c" else values).astype(dtype)


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
def test_numpy_dtype_round_trips_without_a_copy(np_row, make):
    array = sample(np_row)
    with make(array) as tensor:
        assert tensor.dtype == np_row["name"]
        assert tensor.itemsize == np_row["itemsize"]
        assert tensor.nbytes == array.nbytes
        for back in (np.asarray(tensor), np.from_dlpack(tensor), tensor.numpy()):
            assert back.dtype == array.dtype
            assert back.ctypes.data == array.ctypes.data
            assert back.tobytes() == array.tobytes()


def test_numpy_dtype_is_exported_with_the_standard_triple(np_row):
    tensor = dlw.from_dlpack(sample(np_row))
    exported = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (exported.code, exported.bits, exported.lanes) == (
        np_row["code"],
        np_row["bits"],
        np_row["lanes"],
    )


def test_buffer_format_is_numpys(np_row):
    array = sample(np_row)
    view = memoryview(dlw.from_dlpack(array))
    assert np.dtype(np.asarray(view).dtype) == array.dtype
    assert view.itemsize == np_row["itemsize"]
    assert view.format == np_row["format"]


def test_empty_has_dtype_and_alignment(dtype):
    with dlw.empty((2, 3), dtype["name"]) as tensor:
        assert tensor.dtype == dtype["name"]
        assert tensor.nbytes == 6 * dtype["itemsize"]
        struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
        assert struct.data % 256 == 0
        assert dims(struct.strides, 2) == (3, 1)


def test_other_dtype_is_carried_with_its_bytes(other_row):
    producer = Forged(code=other_row["code"], bits=other_row["bits"])
    tensor = dlw.from_dlpack(producer)
    assert tensor.dtype == other_row["name"]
    copied = versioned(tensor.__dlpack__(max_version=(1, 0), copy=True)).dl_tensor
    assert (copied.code, copied.bits) == (other_row["code"], other_row["bits"])
    size = 6 * other_row["itemsize"]
    assert ctypes.string_at(copied.data, size) == bytes(producer.memory)[:size]


def test_other_dtype_has_no_buffer_format(other_row):
    with (
        dlw.empty(3, other_row["name"]) as tensor,
        pytest.raises(BufferError, match=r"no format .* ml_dtypes"),
    ):
        memoryview(tensor)


def test_other_dtype_reaches_numpy_through_ml_dtypes(other_row):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    producer = Forged(code=other_row["code"], bits=other_row["bits"], strides=(1, 2))
    array = dlw.from_dlpack(producer).numpy()
    assert array.dtype == getattr(ml_dtypes, other_row["name"])
    assert array.ctypes.data == ctypes.addressof(producer.memory)
    assert array.strides == (other_row["itemsize"], 2 * other_row["itemsize"])


def test_other_dtype_without_ml_dtypes_names_it(other_row, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with (
        dlw.empty(3, other_row["name"]) as tensor,
        pytest.raises(BufferError, match="install ml_dtypes"),
    ):
        tensor.numpy()


def test_ml_dtypes_array_says_how_to_share_its_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    with pytest.raises(BufferError, match=r"bfloat16.*x.view\('uint16'\)"):
        dlw.from_buffer(np.zeros(2, ml_dtypes.bfloat16))


def test_dtype_may_be_given_as_numpys():
    for given in (np.float16, np.dtype("float16"), "float16"):
        assert dlw.empty(2, given).dtype == "float16"


@pytest.mark.parametrize("given", ["float31", "f4", "object", ""])
def test_unknown_dtype_name_says_which_are_known(given):
    with pytest.raises(TypeError, match=r"unknown dtype.*'float16' to 'float64'"):
        dlw.empty(2, given)


def test_dtype_without_a_name_is_refused():
    with pytest.raises(TypeError, match="dtype must be a name"):
        dlw.empty(2, 3.5)
