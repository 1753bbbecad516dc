"""Work for a device, in steps that record faults with the data that they affect."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...._core import DeviceLostError
from .faults import Fault

if TYPE_CHECKING:
    from ..buffers.slots import Slot
    from ..buffers.views import Part
    from ..device.device import Record


def attempt(record: "Record", what: str, calls: Callable[[], Any]) -> Any:
    """The result of `calls`; BufferError for errors that the GPU reports at once."""
    record.check_alive()
    try:
        with record.turn():
            return calls()
    except record.errors() as error:
        raise refusal(record, what, error) from None


def refusal(record: "Record", what: str, error: Exception) -> BufferError:
    """The exception for a GPU error; DeviceLostError if it says so."""
    why = record.reason(error)
    if why is None:
        return record.lost_error()
    return BufferError(f"{what} failed on {record}: {why}")


def fault_of(
    record: "Record", what: str, error: Exception, label: str | None = None
) -> Fault:
    """The fault for a GPU error; raises DeviceLostError if it says so. label: a
    kernel's."""
    refused = refusal(record, what, error)
    if isinstance(refused, DeviceLostError):
        raise refused from None
    return Fault(str(refused), label)


def check_usable(record: "Record", what: str, used: "Iterable[Slot]") -> None:
    """BufferError if a foreign buffer has been mapped or destroyed."""
    for slot in used:
        if not slot.own:
            with record.turn():
                why = record.unusable(slot.buffer)
            if why is not None:
                raise refusal(record, what, Exception(why))


def operate(
    record: "Record",
    what: str,
    calls: Callable[[], Any],
    *,
    reads: "Iterable[Part]" = (),
    writes: "Iterable[Part]" = (),
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
            with record.turn():
                calls()
        except record.errors() as error:
            fault = fault_of(record, what, error, label)
    for slot, start, end in writes:
        slot.faults.note(start, end, fault)


def ask(record: "Record", faults: Iterable[Fault | None]) -> None:
    """Raises the first fault."""
    record.check_alive()
    for fault in faults:
        if fault is not None:
            raise fault.exception()
