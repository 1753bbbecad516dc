"""GPUBuffers of tensors: making, adopting and copying them."""

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from .... import _core
from ...._layout.dtype import DType
from ..errors.operations import attempt, check_usable, operate
from .table import Slot, faults_of
from .views import Part, View, round_up, span_of, step_of

if TYPE_CHECKING:
    from ..device.device import Device


def allocate(
    device: "Device", nbytes: int, *, used: float | None = None, zeros: bool = False
) -> Slot:
    """A buffer for `nbytes` of `device.size_for`. The bytes after `nbytes` are 0; with `zeros`
    all are. BufferError if the device has no room."""
    device.check_alive()
    size = device.size_for(nbytes)
    words = round_up(nbytes, 4)
    idle = device.pool.take(size, device.usage)
    if idle is not None:
        buffer, dirty = idle
        attempt(
            device,
            "clearing a GPUBuffer",
            lambda: _clear(device, buffer, 0 if zeros else words, dirty),
        )
    else:
        buffer = attempt(
            device,
            f"createBuffer for {size} bytes",
            lambda: device.make(size, device.usage),
        )
    total = nbytes if used is None else used
    return Slot(device, buffer, own=True, used=total, filled=words)


def _clear(device: "Device", buffer: Any, start: int, dirty: int) -> None:
    """Writes zeros from `start` to the end of what earlier tensors may have left."""
    end = min(round_up(dirty, 4), buffer.size)
    if end > start:
        device.clear(buffer, start, end)


def adopt(
    device: "Device",
    buffer: Any,
    shape: tuple[int, ...],
    dtype: DType,
    byte_offset: int,
    release: Callable[[], Any] | None,
) -> _core.Tensor:
    """A tensor over a foreign buffer."""
    device.check_buffer(buffer)
    if release is not None and not callable(release):
        raise TypeError(f"release must be a function, not {release!r}")
    device.check_alive()
    if not isinstance(byte_offset, int):
        raise TypeError(f"byte_offset must be an int, not {byte_offset!r}")
    if byte_offset < 0:
        raise ValueError(f"byte_offset {byte_offset} is negative")
    if min(shape, default=0) < 0:
        raise ValueError(f"extents must not be negative: shape is {shape!r}")
    start, length = span_of(shape, None, step_of(dtype, False), byte_offset)
    if start + length > buffer.size:
        raise ValueError(
            f"shape {shape} of {dtype} from byte {byte_offset} reaches from byte {start} "
            f"to {start + length}; the GPUBuffer has {buffer.size}"
        )
    rest = buffer.size - byte_offset
    padding = rest if rest <= round_up(start + length - byte_offset, 16) else 0
    used = start + prod(shape) * step_of(dtype, False)
    end = max(start + length, byte_offset + padding)
    slot = Slot(
        device,
        buffer,
        own=False,
        used=used,
        end=end,
        release=release,
        faults=faults_of(buffer),
    )
    check_usable(device, "taking over a GPUBuffer", [slot])
    return slot.tensor(shape, dtype, byte_offset=byte_offset)


def copy_of(view: View, least: int = 0) -> Slot:
    """A new buffer with a tensor's elements, followed by zeros."""
    view.check_copy_source("copying")
    slot = allocate(
        view.device, max(view.nbytes, least), used=view.size * view.step, zeros=True
    )
    copy_into(view, slot, 0)
    return slot


def copy_into(view: View, target: Slot, offset: int) -> None:
    """Copies a tensor's elements into another buffer of the same device. The rest of
    their last word there is padding, and becomes 0."""
    if view.nbytes == 0:
        return
    source, device = view.slot, view.device
    device.count("copied", view.nbytes)
    operate(
        device,
        f"copying {view}",
        lambda: device.copy(
            source.buffer, view.start, target.buffer, offset, view.nbytes
        ),
        reads=[view.part()],
        writes=[Part(target, offset, offset + view.nbytes)],
        fresh=True,
    )
