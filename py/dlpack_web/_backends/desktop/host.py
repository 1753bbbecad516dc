"""CPU memory as the memory of GPUBuffers: no copy in either direction.

Dawn supports it if the driver does (dawn.py). A piece of memory has at most one
GPUBuffer: WebGPU orders commands by the buffers that they use, and cannot know that two
share memory. The buffer holds the memory until the GPU has finished with it. It is
dropped with the last tensor over it, unless `to_wgpu()` handed it out.
"""

import ctypes
import time
import weakref
from contextlib import suppress
from math import prod
from typing import Any

from ... import _core
from ..._core import CopyError
from ..._layout import views
from ..._layout.dtype import dtype_of
from ..model.buffers.table import Slot, faults_of
from ..model.buffers.views import View, step_of
from ..model.errors.operations import ask, attempt
from . import dawn
from .device import Device


class _Piece:
    """CPU memory that a device uses."""

    def __init__(self, device: Device, memory: Any) -> None:
        self.device, self.nbytes = device, len(memory)
        self.start = ctypes.addressof(memory)
        #: Held by the GPUBuffer until the GPU has finished with it.
        self.memory = weakref.ref(memory)
        #: None while it is being made. Both references are dead when it is unused.
        self.buffer: weakref.ref[Any] | None = None
        self.slot: weakref.ref[Slot] | None = None

    def overlaps(self, other: "_Piece") -> bool:
        return (
            self.start < other.start + other.nbytes
            and other.start < self.start + self.nbytes
        )

    def is_gone(self) -> bool:
        """Whether no GPUBuffer uses it any more."""
        return self.buffer is not None and self.buffer() is None

    def is_of(self, other: "_Piece") -> bool:
        """Whether both are the same memory on the same device."""
        mine = self.device, self.start, self.nbytes
        return mine == (other.device, other.start, other.nbytes)


_pieces: list[_Piece] = []
_TRIES, _WAIT_S = 10_000, 0.0005  # the GPU is idle then, and one try suffices


def share(tensor: _core.Tensor, device: Any) -> _core.Tensor:
    """A WebGPU tensor over the memory of a CPU tensor; CopyError says what prevents it."""
    device.check_alive()
    memory = _memory_of(device, tensor)
    slot = _slot_over(_Piece(device, memory), memory)
    assert slot.hosts is not None
    dtype = tensor._dtype
    slot.hosts.setdefault((dtype, tensor.padded), _core.from_dlpack(tensor))
    return slot.tensor(tensor.shape, dtype_of(dtype), tensor.padded)


def on_host(tensor: _core.Tensor) -> _core.Tensor:
    """The CPU tensor of a shared one, when the GPU has finished with it."""
    view = View(tensor)
    host = (view.slot.hosts or {}).get((tensor._dtype, view.padded))
    if host is None:
        raise CopyError(
            f"moving {view} to the CPU copies it: its memory is not shared host memory of "
            "that dtype"
        )
    view.device.settle()
    ask(view.device, [view.part().fault()])
    return _core._view(host, view.shape, tensor.strides, int(view.start / view.step))


def _memory_of(device: Device, tensor: _core.Tensor) -> Any:
    """The bytes of a tensor as a ctypes array, if a device can use them in place."""
    step = dawn.host_alignment(device.gpu)
    what = f"moving a tensor from cpu to webgpu:{device.id} copies it"
    if step is None:
        raise CopyError(
            f"{what}: only wgpudawn can share host memory, on a device with the feature "
            '"host-mapped-pointer"'
        )
    if tensor.read_only:
        raise CopyError(f"{what}: its memory is read-only, and a kernel could write it")
    if not views.is_row_major(tensor.shape, tensor.strides):
        raise CopyError(f"{what}: its strides are {tensor.strides}")
    size = prod(tensor.shape) * step_of(dtype_of(tensor._dtype), tensor.padded)
    if size == 0 or size % step:
        raise CopyError(
            f"{what}: it has {size} bytes, but this device shares only whole pages of "
            f"{step}: {_WAY}"
        )
    memory = (ctypes.c_char * int(size)).from_buffer(memoryview(_core._raw(tensor)[0]))
    off = ctypes.addressof(memory) % step
    if off:
        raise CopyError(
            f"{what}: it begins {off} bytes after a multiple of {step}: {_WAY}"
        )
    return memory


_WAY = "make the array with np.frombuffer(mmap.mmap(-1, nbytes), dtype)"


def _slot_over(piece: _Piece, memory: Any) -> Slot:
    """The slot of the one GPUBuffer over this memory."""
    found = _claim(piece)
    if found is not None and found.is_gone():
        free(found.device)  # the GPU may still use what was released
        found = _claim(piece)
    if found is None:
        return _make(piece, memory)
    buffer = found.buffer() if found.buffer is not None else None
    if buffer is None or not found.is_of(piece):
        there = f"{found.nbytes} bytes from {found.start:#x} on {found.device}"
        raise CopyError(
            f"{piece.nbytes} bytes from {piece.start:#x} cannot be shared with "
            f"{piece.device}: {there} are already shared, and overlapping memory can be "
            "shared only once; take views of that tensor, or release it first"
        )
    slot = found.slot() if found.slot is not None else None
    return slot if slot is not None else _slot_of(found, buffer)


def free(device: Device) -> None:
    """Waits, up to a limit, until the GPU has released dropped buffers."""
    device.settle()
    gone = [each for each in _pieces if each.device is device and each.is_gone()]
    attempt(device, "freeing memory", lambda: dawn.free_host_memory(device.gpu))
    for _ in range(_TRIES):
        if all(each.memory() is None for each in gone):
            return
        time.sleep(_WAIT_S)
        device.check_alive()  # asks the device


def _claim(piece: _Piece) -> _Piece | None:
    """Registers a piece, or returns the one in use that it overlaps."""
    for each in _pieces:
        if each.memory() is None:
            _forget(each)
    # First: another thread, or a finalizer, may claim the memory meanwhile.
    _pieces.append(piece)
    for each in _pieces:
        if each is piece:
            break
        if each.overlaps(piece):
            _forget(piece)
            return each
    return None


def _forget(piece: _Piece) -> None:
    with suppress(ValueError):  # forgotten already
        _pieces.remove(piece)


def _make(piece: _Piece, memory: Any) -> Slot:
    device = piece.device
    try:
        buffer = attempt(
            device,
            f"sharing {piece.nbytes} bytes of host memory",
            lambda: dawn.buffer_over(device.gpu, memory, device.usage),
        )
    except BaseException as error:
        _forget(piece)
        if type(error) is BufferError:  # the driver does not support this memory
            raise CopyError(str(error)) from None
        raise
    piece.buffer = weakref.ref(buffer)
    return _slot_of(piece, buffer)


def _slot_of(piece: _Piece, buffer: Any) -> Slot:
    faults = faults_of(buffer)
    slot = Slot(piece.device, buffer, own=False, used=piece.nbytes, faults=faults)
    slot.hosts = {}
    piece.slot = weakref.ref(slot)
    return slot
