"""State of the desktop's backend: devices, GPUBuffers by handle, and pools of idle
buffers.

C knows a GPUBuffer by its handle, which is the memory of a tensor, and counts its
holders. When the last is gone, C reports that, on any thread and wherever Python
collects garbage: within any of the functions here, too. So what that changes (slots,
pools) has no lock: each step is one of the interpreter's, which nothing interrupts.
"""

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary, ref

from ... import _core
from . import wgpu
from ..model.faults import Faults

# GPUBufferUsage
MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE = 1, 4, 8, 64, 128
USAGES = {
    "MAP_READ": MAP_READ,
    "COPY_SRC": COPY_SRC,
    "COPY_DST": COPY_DST,
    "UNIFORM": UNIFORM,
    "STORAGE": STORAGE,
}
#: The usage of buffers made here: everything that tensors need.
DEFAULT_USAGE = STORAGE | UNIFORM | COPY_SRC | COPY_DST

_POOL_BYTES = 256 << 20  # of idle buffers that a device keeps
_IDLE_S = 10.0  # after so long without any use, all of them go


class Record:
    """A registered GPUDevice. Ids stay valid: none is removed."""

    def __init__(
        self,
        device_id: int,
        gpu: Any,
        adapter_limits: Any,
        options: dict[str, Any] | None,
    ) -> None:
        self.id, self.gpu, self.adapter_limits = device_id, gpu, adapter_limits
        #: Those of request_device(); None for a device that was made elsewhere.
        self.options = options
        self.limits = wgpu.limits(gpu)
        self.lost: str | None = None
        #: A buffer over CPU memory was dropped, and the GPU may still use the memory.
        self.frees = False
        self.pool = Pool()
        #: Pipelines that clear the end of a last word, by the number of its bytes to
        #: keep.
        self.masks: dict[int, Any] = {}
        self.up = self.down = self.copied = self.copies = self.taken = 0

    def __str__(self) -> str:
        """ "webgpu:0" with the device's label, for messages."""
        label = self.gpu.label
        return f"webgpu:{self.id}" + (f' ("{label}")' if label else "")

    def check_alive(self) -> None:
        """DeviceLostError unless the device works."""
        if self.is_lost():
            raise _core.DeviceLostError(
                f"webgpu:{self.id} is lost ({self.lost}), with its tensors: request a new "
                "device and upload again"
            )

    def is_lost(self) -> bool:
        """Asks the device, which may run any finalizers. Do not call it with the table
        locked; read `lost` there."""
        if self.frees and self.lost is None:
            self.frees = False
            with suppress(*wgpu.failures()):
                wgpu.free_host_memory(self.gpu)
        why = wgpu.why_lost(self.gpu) if self.lost is None else None
        if why is not None:
            self.lose(why)
        return self.lost is not None

    def lose(self, why: str) -> None:
        self.lost = self.lost or why
        self.pool.clear()

    def count(self, way: str, nbytes: int, copies: int = 1) -> None:
        """Counts a transfer: up, down or copied."""
        if way == "up":
            self.up += nbytes * copies
        elif way == "down":
            self.down += nbytes * copies
        else:
            self.copied += nbytes * copies
        self.copies += copies


class Pool:
    """Idle buffers by size and usage, the least recently used kind first; each with the
    number of bytes that may be other than 0."""

    def __init__(self) -> None:
        self.idle_bytes = self.created = self.reused = 0
        self.used = False  # since the last `_drop_idle`
        self._idle: OrderedDict[tuple[int, int], list[tuple[Any, int]]] = OrderedDict()

    def take(self, size: int, usage: int) -> tuple[Any, int] | None:
        self.idle_bytes -= size  # first: an interrupt may come after the call
        try:
            found = self._idle[size, usage].pop()
        except LookupError:  # no such kind, or none of it
            self.idle_bytes += size
            self.created += 1
            return None
        self.reused += 1
        self.used = True
        return found

    def give(self, buffer: Any, filled: int) -> None:
        key = size, _ = buffer.size, buffer.usage
        kind = self._idle.setdefault(key, [])
        self.idle_bytes += size
        kind.append((buffer, filled))
        if self._idle.get(key) is not kind:  # removed meanwhile
            self._move(kind)
            return
        with suppress(KeyError):
            self._idle.move_to_end(key)
        self.used = True
        if self.idle_bytes > _POOL_BYTES:
            self.trim(_POOL_BYTES)
        _wake()

    def _move(self, kind: list[tuple[Any, int]]) -> None:
        """Gives the buffers of a kind that was removed again."""
        while kind:
            with suppress(IndexError):
                buffer, filled = kind.pop()
                size = buffer.size
                self.idle_bytes -= size
                self.give(buffer, filled)

    def trim(self, budget: int) -> None:
        """Destroys the least recently used buffers, down to `budget` bytes."""
        # Counted again, whatever went wrong.
        kinds = list(self._idle.items())
        self.idle_bytes = sum(size * len(kind) for (size, _), kind in kinds)
        for key, kind in kinds:
            while self.idle_bytes > budget and kind:
                with suppress(IndexError):
                    buffer, _ = kind.pop(0)
                    self.idle_bytes -= key[0]
                    buffer.destroy()
            if not kind:
                self._move(self._idle.pop(key, []))

    def clear(self) -> None:
        """For a lost device: its buffers are gone, too."""
        self._idle.clear()
        self.idle_bytes = 0


class Slot:
    """A GPUBuffer of tensors. Ours returns to the pool when nothing uses the slot any
    more: neither a tensor nor, on whatever thread, an operation."""

    __slots__ = (
        *("buffer", "record", "own", "used", "end", "filled", "release", "faults"),
        "hosts",
        "__weakref__",
    )

    def __init__(
        self,
        record: Record,
        buffer: Any,
        *,
        own: bool,
        used: float,
        end: int | None = None,
        filled: int = 0,
        release: Callable[[], Any] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.record, self.buffer = record, buffer
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

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "own", False) and not exiting():
            _ours.discard(self.buffer)
            if self.record.lost is None:
                self.record.pool.give(self.buffer, self.filled)


#: Our buffers under slots: else Python's collector, which may find both a slot and its
#: buffer, would end the buffer as the slot gives it back.
_ours: set[Any] = set()
#: Faults of foreign buffers and of those handed out, which may come back.
_faults: WeakKeyDictionary[Any, ref[Faults]] = WeakKeyDictionary()
#: Faults of our own among these, which outlive the last tensor.
_kept: WeakKeyDictionary[Any, Faults] = WeakKeyDictionary()


def faults_of(buffer: Any) -> Faults:
    """The faults of a foreign buffer, the same for all tensors over it."""
    with _rare:
        kept = _faults.get(buffer)
        found = None if kept is None else kept()
        if found is None:
            found = Faults()
            _faults[buffer] = ref(found)
        return found


def taken(slot: Slot) -> Any:
    """The buffer of a slot, to hand out: it is never reused for another tensor, nor
    destroyed."""
    with _rare:
        if slot.own:
            slot.own = False
            _ours.discard(slot.buffer)
            slot.record.taken += 1
        if slot.buffer not in _faults:
            _faults[slot.buffer] = ref(slot.faults)
            _kept[slot.buffer] = slot.faults
    return slot.buffer


records: list[Record] = []
slots: dict[int, Slot] = {}
_handles = count(1)
#: For what no finalizer of ours does. It is reentrant for those of other code.
_rare = threading.RLock()


def _on_drop(handle: int) -> None:
    """Called by C, possibly within any of the functions here; again if it raises
    KeyboardInterrupt, which comes only after a call."""
    slot = slots.get(handle)
    if slot is None:
        return
    if slot.hosts is not None:
        slot.record.frees = True
        _wake()
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
        wgpu.wgpu()  # if wgpu is missing, that is the error
        raise _core.ReleasedError(
            f"GPU handle 0x{handle:x} belongs to no GPUBuffer known here: WebGPU "
            "tensors can be shared only within one process and one copy of dlpack_web"
        )
    return slot


# --- idle buffers -----------------------------------------------------------------------

#: Wakes the thread that frees idle pools. Buffers are given back wherever Python
#: collects garbage, where waiting for a lock or starting a thread is not safe; putting
#: into a SimpleQueue is.
_given: SimpleQueue[None] = SimpleQueue()
_waiting: list[bool] = []  # not empty: it is awake
_watcher: list[threading.Thread] = []


def _wake() -> None:
    if not _waiting:
        _waiting.append(True)
        _given.put(None)


def _drop_idle() -> bool:
    """Destroys the idle buffers of devices whose pools were not used since the last
    call. Returns whether others remain; if not, the thread may sleep."""
    for record in records:
        if not record.is_lost() and not record.pool.used:
            with suppress(*wgpu.failures()):
                record.pool.trim(0)
        record.pool.used = False
    _waiting.clear()  # first: what is given back after it wakes the thread
    if not any(record.pool.idle_bytes for record in records):
        return False
    _waiting.append(True)
    return True


def _watch() -> None:
    while True:
        _given.get()
        for record in records:
            record.pool.used = False
        time.sleep(_IDLE_S)
        while _drop_idle():
            time.sleep(_IDLE_S)


def _start_watcher() -> None:
    if not _watcher:
        thread = threading.Thread(target=_watch, name="dlpack_web idle", daemon=True)
        _watcher.append(thread)
        thread.start()


# --- devices ------------------------------------------------------------------------------


def register(
    gpu: Any, adapter_limits: Any = None, options: dict[str, Any] | None = None
) -> Record:
    """The record of a device; the same object keeps its id. options: those of a
    request; if another request with them was faster, the result is its record."""
    _start_watcher()
    for record in records:
        record.is_lost()
    found = _registered(gpu, options)
    if found is not None:
        return found
    made = Record(len(records), gpu, adapter_limits, options)
    with _rare:
        found = _registered(gpu, options)
        if found is not None:
            return found
        made.id = len(records)
        records.append(made)
        return made


def _registered(gpu: Any, options: dict[str, Any] | None) -> Record | None:
    same = (record for record in records if record.gpu is gpu)
    return next(same, None if options is None else _known(options))


def requested(options: dict[str, Any]) -> Record | None:
    """The existing device for a request: it works and was made with the same options;
    without options the first device, the default of "webgpu". None: a new one is
    needed."""
    for record in records:
        record.is_lost()
    return _known(options)


def _known(options: dict[str, Any]) -> Record | None:
    for record in records:
        if (not options or record.options == options) and record.lost is None:
            return record
    return None


def record_with(device_id: int) -> Record:
    """The record with an id; BufferError lists the registered ones."""
    wgpu.wgpu()  # if wgpu is missing, that is the error
    if 0 <= device_id < len(records):
        return records[device_id]
    there = ", ".join(f"webgpu:{record.id}" for record in records)
    raise BufferError(
        f"webgpu:{device_id} is not registered; there are {there}"
        if records
        else f"webgpu:{device_id} is not registered: `await "
        "dlpack_web.webgpu.request_device()` first"
    )


def stats() -> list[dict[str, Any]]:
    """Statistics of each device, in the order of their ids."""
    wgpu.wgpu()
    rows = []
    for record in records:
        found = [slot for slot in list(slots.values()) if slot.record is record]
        rows.append(
            {
                "device": f"webgpu:{record.id}",
                "lost": record.lost if record.is_lost() else None,
                "buffers": len(found),
                "bytes": sum(slot.buffer.size for slot in found),
                "idleBytes": record.pool.idle_bytes,
                "created": record.pool.created,
                "reused": record.pool.reused,
                "up": record.up,
                "down": record.down,
                "copied": record.copied,
                "copies": record.copies,
                "taken": record.taken,
            }
        )
    return rows
