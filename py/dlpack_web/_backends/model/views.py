"""Tensors as parts of GPUBuffers, and what may be done with each."""

from collections.abc import Sequence
from math import ceil, prod
from typing import Any, NamedTuple

from ... import _core
from ..._layout import views
from ..._layout.dtype import DType, dtype_of, misfit_of
from . import messages
from .faults import Fault, NotRun
from .record import USAGES, Record
from .slots import Slot, new_handle, slot_of, slots


def round_up(n: float, step: int) -> int:
    """The least multiple of `step` that is at least `n`."""
    return ceil(n / step) * step if isinstance(n, float) else -(-n // step) * step


def step_of(dtype: DType, padded: bool) -> float:
    """Bytes from an element to the next; a fraction if elements share bytes."""
    bits = 8 if padded else dtype.bits * dtype.lanes
    return bits // 8 if bits % 8 == 0 else bits / 8


class Part(NamedTuple):
    """Bytes of a buffer."""

    slot: Slot
    start: int
    end: int

    def fault(self) -> Fault | None:
        return self.slot.faults.among(self.start, self.end)

    def meets(self, other: "Part") -> bool:
        """Whether both have bytes in common."""
        return self.slot.faults is other.slot.faults and (
            max(self.start, other.start) < min(self.end, other.end)
        )


class View:
    """The properties of a WebGPU tensor, looked up once."""

    def __init__(self, tensor: _core.Tensor) -> None:
        self.tensor = tensor
        self.slot = slot_of(tensor)
        self.record: Any = self.slot.record
        self.shape, self.start = tensor.shape, tensor.byte_offset
        self.dtype = dtype_of(tensor._dtype)
        self.padded, self.read_only = tensor.padded, tensor.read_only
        self.step = step_of(self.dtype, self.padded)
        self.size = prod(self.shape)
        self.nbytes = ceil(self.size * self.step)
        strides = tensor.strides
        row_major = views.is_row_major(self.shape, strides)
        #: None: contiguous, in row-major order.
        self.strides: tuple[int, ...] | None = None if row_major else strides

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shape))
        return f"Tensor {self.dtype}[{shape}] on webgpu:{self.record.id}"

    def span(self) -> tuple[int, int]:
        """Offset of the lowest element in the buffer, and bytes from there to the end
        of the highest."""
        return span_of(self.shape, self.strides, self.step, self.start)

    def part(self) -> Part:
        """The bytes of its elements, and those between them."""
        start, length = self.span()
        return Part(self.slot, start, start + length)

    def capacity(self) -> int:
        """Bytes from element 0 on that no other tensor uses."""
        start, length = self.span()
        exact = self.strides is None
        stop = start + (self.size * self.step if exact else length)
        # A byte that is only partly used may be shared with a neighbour, too.
        end = self.slot.end if stop >= self.slot.used else int(stop)
        return end - self.start

    def owns_words(self) -> bool:
        """Whether it shares no 4-byte word with other tensors."""
        return self.start % 4 == 0 and round_up(self.nbytes, 4) <= self.capacity()


def span_of(
    shape: Sequence[int], strides: Sequence[int] | None, step: float, start: int
) -> tuple[int, int]:
    """Offset of the lowest element, and bytes from there to the end of the highest."""
    size = prod(shape)
    if size == 0:
        return start, 0
    if strides is None:
        return start, ceil(size * step)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = sum(each for each in reach if each < 0)
    high = sum(each for each in reach if each > 0)
    return start + int(low * step), ceil((high - low + 1) * step)


def tensor_over(
    slot: Slot,
    shape: tuple[int, ...],
    dtype: DType,
    padded: bool = False,
    byte_offset: int = 0,
) -> _core.Tensor:
    """A tensor over a buffer; C drops the handle with the last tensor that holds it."""
    handle = new_handle()
    described = shape, None, dtype._packed, padded, False, byte_offset
    try:
        slots[handle] = slot
        return _core._wrap(handle, slot.record.id, *described)
    except BaseException:  # C has already dropped the handle, or never had it
        slots.pop(handle, None)
        raise


def not_run(tensor: _core.Tensor) -> _core.Tensor:
    """A result of a kernel that a batch records."""
    slot, start, end = View(tensor).part()
    slot.faults.note(start, end, NotRun(slot.faults))
    return tensor


# --- checks -------------------------------------------------------------------------------


def check_on(record: Record, view: View) -> None:
    """BufferError unless the tensor is on that device."""
    if view.record is not record:
        raise BufferError(
            f"{view} cannot be used on {record}: devices do not share buffers; await its "
            "to_host(), then upload it with to_device()"
        )


def check_usage(view: View, flag: str, what: str) -> None:
    """BufferError that names the usage flag that the tensor's buffer lacks."""
    usage = int(view.slot.buffer.usage)
    if usage & USAGES[flag]:
        return
    has = " | ".join(name for name, bit in USAGES.items() if usage & bit)
    flags = has or "none of the flags needed here"
    raise BufferError(messages.lacks_usage(what, flag, view, flags))


def check_same(source: View, target: View) -> None:
    """BufferError unless the elements need no conversion."""
    if (source.dtype, source.padded) != (target.dtype, target.padded):
        raise BufferError(f"{source} is on the GPU: only uploads convert")


def check_row_major(view: View) -> None:
    """BufferError for strided tensors, whose elements the shader would misread."""
    if view.strides is not None:
        raise BufferError(
            f"{view} has strides {view.strides}: on WebGPU it can be read, and nothing "
            "else; upload the result of to_host()"
        )


def check_copy_source(view: View, what: str) -> None:
    """WebGPU copies whole words of 4 bytes at offsets that are multiples of 4."""
    check_row_major(view)
    check_usage(view, "COPY_SRC", what)
    end = view.start + round_up(view.nbytes, 4)
    has = view.slot.buffer.size
    if view.start % 4 != 0 or end > has:
        raise BufferError(messages.unaligned_copy(what, view, view.start, end, has))


def check_write(target: _core.Tensor, source: _core.Tensor, convert: bool) -> View:
    """What is written to; BufferError if the elements cannot be written there."""
    view = View(target)
    view.record.check_alive()
    misfit = misfit_of(source, target)
    if misfit and not (convert and source.shape == view.shape):
        raise BufferError(
            f"{dtype_of(source._dtype)} of shape {source.shape} cannot be written over "
            f"{view}: {misfit}"
        )
    if view.read_only:
        raise BufferError(f"{view} is read-only and cannot be written to")
    if view.strides is not None:
        raise BufferError(f"{view} is strided and cannot be written to")
    check_usage(view, "COPY_DST", "writing")
    # Whole words are written: the rest of the last one must be padding.
    if not view.owns_words():
        raise BufferError(
            f"{view} shares words of 4 bytes with its neighbours (byte offset "
            f"{view.start}, {view.nbytes} bytes): WebGPU writes whole words"
        )
    return view
