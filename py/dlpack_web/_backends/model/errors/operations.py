"""Work for a device, in steps that record faults with the data that they affect."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...._core import DeviceLostError
from .errors import Fault

if TYPE_CHECKING:
    from ..buffers.table import Slot
    from ..buffers.views import Part
    from ..device.device import Device


def attempt(device: "Device", what: str, calls: Callable[[], Any]) -> Any:
    """The result of `calls`; BufferError for errors that the GPU reports at once."""
    device.check_alive()
    try:
        with device.turn():
            return calls()
    except device.errors() as error:
        raise refusal(device, what, error) from None


def refusal(device: "Device", what: str, error: Exception) -> BufferError:
    """The exception for a GPU error; DeviceLostError if it says so."""
    why = device.reason(error)
    if why is None:
        return device.lost_error()
    return BufferError(f"{what} failed on {device}: {why}")


def fault_of(
    device: "Device", what: str, error: Exception, label: str | None = None
) -> Fault:
    """The fault for a GPU error, or DeviceLostError. label: a kernel's."""
    refused = refusal(device, what, error)
    if isinstance(refused, DeviceLostError):
        raise refused from None
    return Fault(str(refused), label)


def check_usable(device: "Device", what: str, used: "Iterable[Slot]") -> None:
    """BufferError if a foreign buffer has been mapped or destroyed."""
    for slot in used:
        if not slot.own:
            with device.turn():
                why = device.unusable(slot.buffer)
            if why is not None:
                raise refusal(device, what, Exception(why))


def operate(
    device: "Device",
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
    device.check_alive()
    check_usable(device, what, {part.slot for part in (*reads, *writes)})
    inherited = [part.fault() for part in (*reads, *(() if fresh else writes))]
    fault = next((each for each in (after, *inherited) if each is not None), None)
    if fault is None:
        try:
            with device.turn():
                calls()
        except device.errors() as error:
            fault = fault_of(device, what, error, label)
    for slot, start, end in writes:
        slot.faults.note(start, end, fault)


def ask(device: "Device", faults: Iterable[Fault | None]) -> None:
    """Raises the first fault."""
    device.check_alive()
    for fault in faults:
        if fault is not None:
            raise fault.exception()
