"""What C gives Python where that has the GPUBuffers itself: handles, their end, pieces."""

import gc
import sys
import threading

import numpy as np
import pytest
from packing import vectors

import dlpack_web as dlw
from dlpack_web import _core

if sys.platform == "emscripten":
    pytest.skip("JavaScript has the GPUBuffers here", allow_module_level=True)

from dlpack_web._backends.model.buffers import table, transfer

FLOAT32 = dlw.DType("float32")._packed


@pytest.fixture
def dropped():
    """The handles that were let go of."""
    handles = []
    _core._on_gpu_drop(handles.append)
    yield handles
    _core._on_gpu_drop(table._on_drop)


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


def released(tensor):
    tensor.release()
    for _ in range(1000):  # CPython looks for interrupts
        pass


def test_an_interrupt_is_raised_after_the_handle_was_let_go():
    """A deleter raises nothing."""
    handles = []

    def interrupted_once(handle):
        handles.append(handle)
        if len(handles) == 1:
            raise KeyboardInterrupt

    _core._on_gpu_drop(interrupted_once)
    tensor = wrap()
    try:
        with pytest.raises(KeyboardInterrupt):
            released(tensor)
    finally:
        _core._on_gpu_drop(table._on_drop)
    assert handles == [7, 7]


@pytest.mark.parametrize("size", [16, 4096, 1 << 20])
@pytest.mark.parametrize(
    ("source", "target"), [("f8", "float64"), ("f8", "float32"), ("f2", "float32")]
)
def test_pieces_are_the_elements_in_order(source, target, size):
    """Also if two tensors are packed in turns, each with scratch memory of its own."""
    shape = (1500, 2000) if size == 1 << 20 else (12, 20)
    arrays = [
        (np.arange(np.prod(shape)) % 1999 + k).astype(source).reshape(shape).T
        for k in (0, 1)
    ]
    dtype, pieces, first = dlw.DType(target), ([], []), 0
    tensors = [dlw.from_dlpack(array) for array in arrays]
    scratch = [bytearray(size), bytearray(size)]
    while first < arrays[0].size:
        now = [
            _core._chunk(tensor, dtype._packed, first, own)
            for tensor, own in zip(tensors, scratch, strict=True)
        ]
        for own, (_, memory) in zip(pieces, now, strict=True):
            assert memory.readonly
            own.append(bytes(memory))
        first += now[0][0]
    assert len(pieces[0]) > 1 or size == 4096
    for array, tensor, own in zip(arrays, tensors, pieces, strict=True):
        found = np.frombuffer(b"".join(own), target)
        assert (found == array.astype(target).ravel()).all()
        tensor.release()


def test_pieces_that_are_none():
    with dlw.from_dlpack(np.zeros((4096, 4099), "u1")[:, :4097]) as odd:
        scratch = bytearray(1 << 16)
        assert _core._chunk(odd, odd._dtype, 0, scratch)[0] != 0
        with pytest.raises(ValueError, match="no element"):
            _core._chunk(odd, odd._dtype, -1, scratch)
        with pytest.raises(BufferError, match="cannot convert uint8"):
            _core._chunk(odd, FLOAT32, 0, scratch)
        for memory in (bytes(16), None):
            with pytest.raises(TypeError):
                _core._chunk(odd, odd._dtype, 0, memory)
    wide = dlw.from_dlpack(np.zeros((4, 4)).T)
    with wide, pytest.raises(ValueError, match="7 bytes are too few for whole words"):
        _core._chunk(wide, wide._dtype, 0, bytearray(7))


PAIRS = [("f8", "f4"), ("c16", "c8"), ("f4", "f2"), ("f2", "f4"), ("i8", "i4")]
WHOLE = [
    "uint8",
    *(f"uint8x{width}" for width in range(2, 17)),
    "int4",
    "float6_e3m2fn",
]
KINDS = PAIRS + [(name, None) for name in WHOLE]


@pytest.mark.parametrize(("source", "target"), KINDS)
def test_pieces_are_whole_words_and_all_elements(source, target, monkeypatch):
    """Whatever the shape, the strides and the size of a piece."""
    rng = np.random.default_rng(KINDS.index((source, target)))
    dtype = dlw.DType(source if target is None else np.dtype(target).name)
    lanes = dtype.lanes
    for _ in range(300):
        most = rng.integers(4, 400) * 4 * max(lanes, 4)
        monkeypatch.setattr(transfer, "_PIECE", int(most))
        monkeypatch.setattr(transfer, "_scratch", [])
        shape = rng.integers(1, 24, rng.integers(1, 5))
        if target is not None:
            raw = rng.integers(0, 99, shape).astype(source)
        else:
            raw = rng.integers(0, 256, (*shape, lanes), "u1").view(f"V{lanes}")[..., 0]
        steps = tuple(
            slice(None, None, int(k)) for k in rng.choice([1, 2, -1], len(shape))
        )
        array = raw[steps].transpose(rng.permutation(len(shape)))
        if dtype.bits < 8:
            tensor = dlw.empty(array.size, dtype)
            expected = bytes(memoryview(_core._raw(tensor)[0]))
        else:
            expected = array.astype(target or array.dtype).tobytes()
            tensor = dlw.from_dlpack(vectors(array) if target is None else array)
        pieces = [bytes(piece) for piece in transfer._pieces(tensor, dtype)]
        assert b"".join(pieces) == expected
        assert all(len(piece) % 4 == 0 for piece in pieces[:-1])
        assert all(len(piece) <= most for piece in pieces) or len(expected) <= 2 * most


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_memory_is_read_only_and_padded_as_it_is_wrapped(read_only, padded, dropped):
    dtype = dlw.DType("int4")._packed
    with _core._wrap(7, 1, (2, 3), None, dtype, padded, read_only, 0) as tensor:
        assert (tensor.read_only, tensor.padded) == (read_only, padded)
