"""What C gives Python where that has the GPUBuffers itself: handles, their end, pieces."""

import gc
import sys
import threading

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web import _core

if sys.platform == "emscripten":
    pytest.skip("JavaScript has the GPUBuffers here", allow_module_level=True)

from dlpack_web._backends.desktop import state

FLOAT32 = dlw.DType("float32")._packed


@pytest.fixture
def dropped():
    """The handles that were let go of."""
    handles = []
    _core._on_gpu_drop(handles.append)
    yield handles
    _core._on_gpu_drop(state._on_drop)


def wrap(handle=7, shape=(2, 3), strides=None, dtype=FLOAT32, offset=0):
    return _core._wrap(handle, 1, shape, strides, dtype, False, False, offset)


def test_a_handle_is_the_memory_of_a_tensor(dropped):
    with wrap(0xFFFFFFFF, offset=256) as tensor:
        assert (tensor.shape, tensor.dtype, tensor.byte_offset) == (
            (2, 3),
            "float32",
            256,
        )
        assert str(tensor.device) == "webgpu:1"
        assert _core._gpu(tensor) == 0xFFFFFFFF
        with tensor[1:] as view:
            assert _core._gpu(view) == 0xFFFFFFFF
    assert dropped == [0xFFFFFFFF]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_it_is_let_go_of_once_after_the_last_holder(elsewhere, dropped):
    tensor = wrap()
    holds = [tensor[0], tensor.__dlpack__(max_version=(1, 3)), tensor[:]]
    tensor.release()
    assert dropped == []
    if elsewhere:
        thread = threading.Thread(target=holds.clear)
        thread.start()
        thread.join()
    holds.clear()
    gc.collect()
    assert dropped == [7]


def test_a_function_that_raises_breaks_nothing():
    told = []
    before = sys.unraisablehook
    sys.unraisablehook = told.append
    try:
        _core._on_gpu_drop(lambda handle: 1 / 0)
        wrap().release()
    finally:
        sys.unraisablehook = before
        _core._on_gpu_drop(state._on_drop)
    assert [each.exc_type for each in told] == [ZeroDivisionError]
    told.clear()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"shape": (-1,)}, BufferError),
        ({"shape": (2,) * 65}, BufferError),
        ({"shape": (2**62, 2**62)}, BufferError),
        ({"shape": ("2",)}, TypeError),
        ({"shape": [2]}, TypeError),
        ({"strides": (1,)}, TypeError),
        ({"dtype": 0xFFFFFF}, BufferError),
    ],
)
def test_what_is_refused_keeps_its_reference(options, error, dropped):
    with pytest.raises(error):
        wrap(**options)
    assert dropped == []


def test_cpu_tensors_have_no_handle():
    with dlw.empty(3) as tensor, pytest.raises(BufferError, match="on the CPU"):
        _core._gpu(tensor)


@pytest.mark.parametrize("target", ["float64", "float32"])
def test_pieces_are_the_elements_in_order(target):
    array = np.arange(3_000_000.0).reshape(1500, 2000).T
    dtype, pieces, first = dlw.DType(target), [], 0
    with dlw.from_dlpack(array) as tensor:
        while first < array.size:
            count, memory = _core._chunk(tensor, dtype._packed, first)
            assert memory.readonly
            pieces.append(bytes(memory))
            first += count
    assert len(pieces) > 1
    found = np.frombuffer(b"".join(pieces), target)
    assert (found == array.astype(target).ravel()).all()


def test_pieces_that_are_none():
    with dlw.from_dlpack(np.zeros((4096, 4099), "u1")[:, :4097]) as odd:
        assert _core._chunk(odd, odd._dtype, 0)[0] != 0
        with pytest.raises(ValueError, match="no element"):
            _core._chunk(odd, odd._dtype, -1)
        with pytest.raises(BufferError, match="cannot convert uint8"):
            _core._chunk(odd, FLOAT32, 0)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_memory_is_read_only_and_padded_as_it_is_wrapped(read_only, padded, dropped):
    dtype = dlw.DType("int4")._packed
    with _core._wrap(7, 1, (2, 3), None, dtype, padded, read_only, 0) as tensor:
        assert (tensor.read_only, tensor.padded) == (read_only, padded)
