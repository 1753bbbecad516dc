"""`__dlpack_c_exchange_api__`, driven as a consumer in C would."""

import ctypes
from ctypes import (
    POINTER,
    PYFUNCTYPE,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_uint32,
    c_void_p,
    py_object,
)

import numpy as np
import pytest
from forge import CPU, DELETER, READ_ONLY, DLTensor, Forged, Versioned, get_pointer

import dlpack_web as dlw

SET_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class Api(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev_api", c_void_p),
        ("allocate", PYFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, SET_ERROR)),
        ("from_object", PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))),
        ("to_object", PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))),
        ("describe", PYFUNCTYPE(c_int, py_object, POINTER(DLTensor))),
        ("current_stream", PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))),
    )


@pytest.fixture(scope="module")
def api():
    capsule = dlw.Tensor.__dlpack_c_exchange_api__
    return Api.from_address(get_pointer(capsule, b"dlpack_exchange_api"))


def delete(address):
    DELETER(Versioned.from_address(address).deleter)(address)


def object_at(address):
    """The object of a new reference, which is given up."""
    value = ctypes.cast(address, py_object).value
    ctypes.pythonapi.Py_DecRef(py_object(value))
    return value


def test_header_is_complete(api):
    assert (api.major, api.minor, api.prev_api) == (1, 3, None)
    for name in ("allocate", "from_object", "to_object", "describe", "current_stream"):
        assert ctypes.cast(getattr(api, name), c_void_p).value


def test_it_is_on_the_type_and_inherited():
    class Mine(dlw.Tensor):
        pass

    assert Mine.__dlpack_c_exchange_api__ is dlw.Tensor.__dlpack_c_exchange_api__


def test_from_object_holds_the_memory(api):
    array = np.arange(6, dtype=np.float32)
    array.flags.writeable = False
    tensor = dlw.from_dlpack(array)
    out = c_void_p()
    assert api.from_object(tensor, byref(out)) == 0
    tensor.release()
    struct = Versioned.from_address(out.value)
    assert (struct.major, struct.minor, struct.flags) == (1, 3, READ_ONLY)
    assert struct.dl_tensor.data == array.ctypes.data
    delete(out.value)


@pytest.mark.parametrize("wrong", [None, 5, np.zeros(2)], ids=["None", "int", "array"])
def test_from_object_refuses_other_types(api, wrong):
    out = c_void_p(1)
    with pytest.raises(TypeError, match=r"expected a dlpack_web\.Tensor"):
        api.from_object(wrong, byref(out))
    assert out.value is None


def test_from_object_refuses_a_released_tensor(api):
    tensor = dlw.empty(2)
    tensor.release()
    with pytest.raises(dlw.ReleasedError):
        api.from_object(tensor, byref(c_void_p()))


def test_describe_borrows(api):
    array = np.arange(6.0).reshape(2, 3)
    with dlw.from_dlpack(array) as tensor:
        before, out = dlw.live_tensors(), DLTensor()
        assert api.describe(tensor, byref(out)) == 0
        assert dlw.live_tensors() == before
        assert (out.data, out.ndim, out.shape[1]) == (array.ctypes.data, 2, 3)


def test_to_object_takes_over(api):
    producer, out = Forged(), c_void_p()
    assert api.to_object(ctypes.addressof(producer.managed), byref(out)) == 0
    tensor = object_at(out.value)
    assert type(tensor) is dlw.Tensor
    assert np.asarray(tensor)[1, 2] == 5
    assert producer.deleted == 0
    tensor.release()
    assert producer.deleted == 1


def test_to_object_leaves_what_it_refuses(api):
    producer, out = Forged(lanes=0), c_void_p(1)
    with pytest.raises(BufferError, match="lanes 0"):
        api.to_object(ctypes.addressof(producer.managed), byref(out))
    assert out.value is None
    assert producer.deleted == 0


def test_to_object_refuses_null(api):
    with pytest.raises(ValueError, match="NULL"):
        api.to_object(None, byref(c_void_p()))


def test_round_trip_through_both(api):
    array = np.arange(4.0)
    with dlw.from_dlpack(array) as tensor:
        out, back = c_void_p(), c_void_p()
        api.from_object(tensor, byref(out))
        api.to_object(out.value, byref(back))
    assert np.shares_memory(object_at(back.value).numpy(), array)


def allocate(api, **fields):
    """(struct address or None, errors) for a prototype; data is never read."""
    producer = Forged(data=None, strides=None, **fields)
    prototype = ctypes.addressof(producer.managed) + Versioned.dl_tensor.offset
    out, errors = c_void_p(), []
    set_error = SET_ERROR(lambda context, kind, message: errors.append(kind))
    status = api.allocate(prototype, ctypes.addressof(out), None, set_error)
    assert status == (-1 if errors else 0)
    return out.value, errors


def test_allocate(api):
    address, errors = allocate(api)
    assert errors == []
    tensor = Versioned.from_address(address).dl_tensor
    assert tensor.data % 256 == 0
    assert (tensor.device_type, tensor.shape[:2], tensor.strides[:2]) == (
        CPU,
        [2, 3],
        [3, 1],
    )
    delete(address)


@pytest.mark.parametrize(
    "fields",
    [{"lanes": 0}, {"device_type": 15}, {"shape": (2**40, 2**40)}, {"ndim": -1}],
)
def test_allocate_tells_errors_once(api, fields):
    assert allocate(api, **fields) == (None, [b"BufferError"])


@pytest.mark.parametrize("device", [(1, 0), (15, 2)])
def test_there_are_no_streams(api, device):
    out = c_void_p(1)
    assert api.current_stream(*device, byref(out)) == 0
    assert out.value is None


def test_tvm_ffi_consumes_tensors(host_python):
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    with dlw.from_dlpack(array) as tensor:
        theirs = tvm_ffi.from_dlpack(tensor)
    assert np.shares_memory(np.from_dlpack(theirs), array)
    back = dlw.from_dlpack(theirs)
    assert np.shares_memory(back.numpy(), array)
