"""Work for a device, in steps that record faults with the data that they affect."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ... import _core
from . import wgpu
from ..model.faults import Fault
from .state import Record, Slot


class Part(NamedTuple):
    """Bytes of a buffer."""

    slot: Slot
    start: int
    end: int

    def fault(self) -> Fault | None:
        return self.slot.faults.among(self.start, self.end)


def attempt(record: Record, what: str, calls: Callable[[], Any]) -> Any:
    """The result of `calls`; BufferError for errors that the GPU reports at once."""
    record.check_alive()
    try:
        with wgpu.turn():
            return calls()
    except wgpu.errors() as error:
        raise refusal(record, what, error) from None


def refusal(record: Record, what: str, error: Exception) -> Exception:
    """The exception for a GPU error; if it says so, the device is recorded as lost."""
    wgpu.without_frames(error)
    if not wgpu.is_lost(error):
        return BufferError(f"{what} failed on {record}: {wgpu.reason(error)}")
    record.lose(wgpu.why_lost(record.gpu) or "unknown")
    try:
        record.check_alive()
    except _core.DeviceLostError as lost:
        return lost
    raise AssertionError("a lost device was found alive")


def check_usable(record: Record, what: str, used: Iterable[Slot]) -> None:
    """BufferError if a foreign buffer has been mapped or destroyed."""
    for slot in used:
        if not slot.own:
            with wgpu.turn():
                why = wgpu.unusable(record.gpu, slot.buffer)
            if why is not None:
                raise refusal(record, what, Exception(why))


def operate(
    record: Record,
    what: str,
    calls: Callable[[], Any],
    *,
    reads: Iterable[Part] = (),
    writes: Iterable[Part] = (),
    fresh: bool = False,
    after: Fault | None = None,
    label: str | None = None,
) -> None:
    """Runs WebGPU calls that submit, and records their failure with the bytes that they
    write.

    fresh: they write all of these bytes, so earlier faults do not matter. after: a
    fault that this depends on. The calls do not run after it, nor if what they read is
    faulty. label: a kernel's.
    """
    reads, writes = tuple(reads), tuple(writes)
    record.check_alive()
    check_usable(record, what, {part.slot for part in (*reads, *writes)})
    inherited = [part.fault() for part in (*reads, *(() if fresh else writes))]
    fault = next((each for each in (after, *inherited) if each is not None), None)
    if fault is None:
        try:
            with wgpu.turn():
                calls()
        except wgpu.errors() as error:
            if wgpu.is_lost(error):
                raise refusal(record, what, error) from None
            why = wgpu.reason(wgpu.without_frames(error))
            text = f"{what} failed on {record}: {why}"
            fault = Fault(text, label)
    for slot, start, end in writes:
        slot.faults.note(start, end, fault)


def ask(record: Record, faults: Iterable[Fault | None]) -> None:
    """Raises the first fault."""
    record.check_alive()
    for fault in faults:
        if fault is not None:
            raise fault.exception()
