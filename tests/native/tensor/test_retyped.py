"""The bytes of a tensor as elements of another dtype (_core._retyped): tinygrad's buffers are bytes."""

import numpy as np
import pytest
from forge import READ_ONLY, SUBBYTE_PADDED, Forged

import dlpack_web as dlw
from dlpack_web import _core


def packed(name):
    return dlw.DType(name)._packed


@pytest.mark.parametrize(
    "name", ["uint8", "int16", "float32", "float64", "bool", "float32x4"]
)
def test_bytes_become_elements_and_elements_bytes(name):
    memory = np.arange(32, dtype=np.uint8)
    size = 32 // dlw.DType(name).itemsize
    with dlw.from_dlpack(memory) as raw:
        before = dlw.live_tensors()
        view = _core._retyped(raw, (size,), packed(name))
        assert (view.dtype, view.shape, view.strides) == (name, (size,), (1,))
        again = _core._retyped(view, (2, 16), packed("uint8"))
        raw.release()
        assert np.asarray(again).ravel().tolist() == memory.tolist()
        memory[0] = 77
        assert np.asarray(again)[0, 0] == 77
        view.release()
        again.release()
        assert dlw.live_tensors() == before - 1


def test_fewer_bytes_and_none_are_enough():
    with dlw.from_dlpack(np.arange(8, dtype=np.uint8)) as raw:
        assert _core._retyped(raw, (), packed("float32")).shape == ()
        assert _core._retyped(raw, (3, 2), packed("uint8")).strides == (2, 1)
        assert _core._retyped(raw, (0, 9), packed("float64")).size == 0
    with dlw.empty((0,)) as none:
        assert _core._retyped(none, (0,), packed("float64")).shape == (0,)


@pytest.mark.parametrize(
    ("shape", "name", "message"),
    [
        ((3,), "float32", "beyond its tensor"),
        ((2, 2), "float32", "beyond its tensor"),
        ((9,), "uint8", "beyond its tensor"),
        ((2**62, 2), "uint8", "reach beyond"),
        ((2**61,), "float64", "reach beyond"),
        ((-1,), "uint8", "negative extent"),
        ((1,) * 65, "uint8", "dimensions"),
        ((8,), "uint4", "dtype"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(shape, name, message):
    with dlw.from_dlpack(np.arange(8, dtype=np.uint8)) as raw:
        before = dlw.live_tensors()
        with pytest.raises(BufferError, match=message):
            _core._retyped(raw, shape, packed(name))
        assert dlw.live_tensors() == before


@pytest.mark.parametrize("read_only", [0, READ_ONLY])
def test_padding_ends_with_the_dtype_that_had_it(read_only):
    """DLPack 1.1: elements of less than a byte may have a byte each, others may not."""
    padded = Forged(
        code=0,
        bits=4,
        ndim=1,
        shape=(8,),
        strides=(1,),
        flags=SUBBYTE_PADDED | read_only,
    )
    with dlw.from_dlpack(padded) as raw:
        assert raw.padded
        view = _core._retyped(raw, (2,), packed("float32"))
        assert (view.padded, view.nbytes, view.itemsize) == (False, 8, 4)
        assert view.read_only == bool(read_only)
        with view[1:] as rest:
            assert np.asarray(rest).ctypes.data == np.asarray(view).ctypes.data + 4
        view.release()


def test_strides_and_packed_elements_are_refused():
    beyond = pytest.raises(BufferError, match="beyond its tensor")
    with dlw.from_dlpack(np.arange(8.0).reshape(2, 4).T) as t, beyond:
        _core._retyped(t, (8,), packed("float64"))
    with dlw.empty(16, "uint4") as t, pytest.raises(BufferError, match="dtype"):
        _core._retyped(t, (8,), packed("uint8"))


def test_misaligned_memory_is_refused_and_a_gpu_has_no_addresses():
    before = dlw.live_tensors()
    with dlw.from_dlpack(np.arange(9, dtype=np.uint8)[1:]) as raw:
        with pytest.raises(BufferError, match="not aligned to 4"):
            _core._retyped(raw, (2,), packed("float32"))
        raw.release()
        with pytest.raises(dlw.ReleasedError):
            _core._retyped(raw, (2,), packed("uint8"))
    on_gpu = Forged(
        device_type=15, data=7, code=1, bits=8, ndim=1, byte_offset=100, shape=(8,), strides=(1,)
    )  # fmt: skip
    with dlw.from_dlpack(on_gpu) as raw:
        view = _core._retyped(raw, (2,), packed("float32"))
        assert (view.byte_offset, view.shape, view.dtype) == (100, (2,), "float32")
        assert view.__dlpack_device__() == (15, 0)
        view.release()
    assert dlw.live_tensors() == before
