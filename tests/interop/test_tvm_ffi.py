"""What only tvm-ffi has: the exchange API as consumer, functions, WebGPU devices."""

import numpy as np
import pytest
from forge import Forged, versioned
from frameworks import address, aligned

import dlpack_web as dlw

tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")


@pytest.fixture
def echo():
    """A C++ function that returns its argument."""
    return tvm_ffi.get_global_func("testing.echo")


def test_functions_take_and_return_our_tensors(echo):
    """Both ways through the exchange API of the argument's type."""
    producer = Forged(data=aligned(np.zeros((2, 3), np.float32)).ctypes.data)
    with dlw.from_dlpack(producer) as tensor:
        returned = echo(tensor)
        assert type(returned) is dlw.Tensor
        assert (returned.shape, address(returned)) == ((2, 3), address(tensor))
    assert producer.deleted == 0
    returned.release()
    assert producer.deleted == 1


def test_functions_return_webgpu_tensors(echo):
    producer = Forged(device_type=15, device_id=1, data=0x1234, byte_offset=16)
    with dlw.from_dlpack(producer) as tensor, echo(tensor) as returned:
        assert str(returned.device) == "webgpu:1"
        assert (returned.byte_offset, address(returned)) == (16, 0x1244)
    assert producer.deleted == 1


@pytest.mark.parametrize("take", [versioned, None], ids=["versioned", "exchange API"])
def test_our_version_is_understood(take):
    """Its own capsules and those of ours are both of DLPack 1.3."""
    with dlw.empty((2, 3)) as tensor:
        x = tensor.__dlpack__(max_version=(1, 3)) if take else tensor
        array = tvm_ffi.from_dlpack(x)
        struct = versioned(array.__dlpack__(max_version=(1, 3)))
        assert (struct.major, struct.minor) == (1, 3)
        assert address(tensor) == array.data_ptr()


def test_padded_elements_are_refused():
    """It knows packed ones only, so that it must not get these without their flag."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    with (
        dlw.from_dlpack(np.array([1, 2, -3], ml_dtypes.int4)) as tensor,
        pytest.raises((BufferError, RuntimeError)),
    ):
        tvm_ffi.from_dlpack(tensor)


def test_alignment_and_contiguity_can_be_required():
    values = aligned(np.zeros((4, 8), np.float32))
    with dlw.from_dlpack(values) as tensor:
        array = tvm_ffi.from_dlpack(
            tensor, require_alignment=256, require_contiguous=True
        )
        assert array.data_ptr() == values.ctypes.data
    with (
        dlw.from_dlpack(values.T) as tensor,
        pytest.raises((BufferError, RuntimeError)),
    ):
        tvm_ffi.from_dlpack(tensor, require_contiguous=True)
