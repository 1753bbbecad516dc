"""The table of GPUBuffers by handle.

C knows a GPUBuffer by its handle, which is the memory of a tensor, and counts its
holders. When the last is gone, C reports that, on any thread and wherever Python
collects garbage: within any of the functions here, too. So what that changes (slots,
pools) has no lock: each step is one of the interpreter's, which nothing interrupts.
"""

import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .... import _core
from ...._layout.dtype import DType
from ..errors.errors import Faults

if TYPE_CHECKING:
    from ..device.device import Device


class Slot:
    """A GPUBuffer of tensors. Ours returns to the pool when nothing uses the slot any
    more: neither a tensor nor, on whatever thread, an operation."""

    __slots__ = (
        "__weakref__",
        "buffer",
        "device",
        "end",
        "faults",
        "filled",
        "hosts",
        "own",
        "release",
        "used",
    )

    def __init__(
        self,
        device: "Device",
        buffer: Any,
        *,
        own: bool,
        used: float,
        end: int | None = None,
        filled: int = 0,
        release: Callable[[], Any] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.device, self.buffer = device, buffer
        #: Bytes from the start that the elements of the whole tensor use; a fraction if
        #: they end within a byte.
        self.used = used
        #: Bytes from the start of the buffer that no other tensor uses.
        self.end: int = buffer.size if end is None else end
        #: Bytes from the start that may be other than 0, in our own buffers.
        self.filled = filled
        self.release = release
        self.faults = Faults() if faults is None else faults
        #: For a buffer over CPU memory: the CPU tensors over it, by packed dtype and
        #: whether it is padded.
        self.hosts: dict[tuple[int, bool], _core.Tensor] | None = None
        self.own = own  # last: until then `__del__` does nothing
        if own:
            _ours.add(buffer)

    def tensor(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        padded: bool = False,
        byte_offset: int = 0,
    ) -> _core.Tensor:
        """A tensor over the buffer; C drops the handle with the last one that holds it."""
        handle = new_handle()
        described = shape, None, dtype._packed, padded, False, byte_offset
        try:
            slots[handle] = self
            return _core._wrap(handle, self.device.id, *described)
        except BaseException:  # C has already dropped the handle, or never had it
            slots.pop(handle, None)
            raise

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "own", False) and not exiting():
            _ours.discard(self.buffer)
            if self.device.lost is None:
                self.device.pool.give(self.buffer, self.filled)


#: Our buffers under slots: else Python's collector, which may find both a slot and its
#: buffer, would end the buffer as the slot gives it back.
_ours: set[Any] = set()
#: Faults of foreign buffers and of those handed out, which may come back.
_faults: WeakKeyDictionary[Any, ref[Faults]] = WeakKeyDictionary()
#: Faults of our own among these, which outlive the last tensor.
_outliving: WeakKeyDictionary[Any, Faults] = WeakKeyDictionary()


def faults_of(buffer: Any) -> Faults:
    """The faults of a foreign buffer, the same for all tensors over it."""
    with _lock:
        existing = _faults.get(buffer)
        found = None if existing is None else existing()
        if found is None:
            found = Faults()
            _faults[buffer] = ref(found)
        return found


def exposed(slot: Slot) -> Any:
    """The buffer of a slot, to hand out: never reused or destroyed from now on."""
    with _lock:
        if slot.own:
            slot.own = False
            _ours.discard(slot.buffer)
            slot.device.exposed += 1
        if slot.buffer not in _faults:
            _faults[slot.buffer] = ref(slot.faults)
            _outliving[slot.buffer] = slot.faults
    return slot.buffer


slots: dict[int, Slot] = {}
_handles = count(1)
#: For what no finalizer of ours does. It is reentrant for those of other code.
_lock = threading.RLock()


def _on_drop(handle: int) -> None:
    """Called by C, possibly within any of the functions here; again if it raises
    KeyboardInterrupt, which comes only after a call."""
    slot = slots.get(handle)
    if slot is None:
        return
    slot.device.dropped(slot)
    del slots[handle]
    if slot.release is not None:
        slot.release()


_core._on_gpu_drop(_on_drop)


def new_handle() -> int:
    """An unused handle: 1 to 2**32 - 1, then from the start again."""
    handle = next(_handles) & 0xFFFFFFFF
    while handle == 0 or handle in slots:
        handle = next(_handles) & 0xFFFFFFFF
    return handle


def slot_of(tensor: _core.Tensor) -> Slot:
    """The slot of a WebGPU tensor; ReleasedError for an unknown handle."""
    handle = _core._gpu(tensor)
    slot = slots.get(handle)
    if slot is None:
        raise _core.ReleasedError(
            f"GPU handle 0x{handle:x} belongs to no GPUBuffer known here: WebGPU "
            "tensors can be shared only within one process and one copy of dlpack_web"
        )
    return slot
