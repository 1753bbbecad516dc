"""Tensors as parts of GPUBuffers, and what may be done with each."""

from collections.abc import Iterable, Sequence
from math import ceil, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from .... import _core
from ...._layout import views
from ...._layout.dtype import DType, dtype_of, misfit_of
from .. import messages
from ..errors.errors import Fault, NotRun
from .pool import USAGES
from .table import Slot, slot_of

if TYPE_CHECKING:
    from ..device.device import Device


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

    @staticmethod
    def of(args: Iterable[Any]) -> list[Any]:
        """Arguments of a call: views of tensors, and numbers."""
        return [View(x) if isinstance(x, _core.Tensor) else x for x in args]

    def __init__(self, tensor: _core.Tensor) -> None:
        self.tensor = tensor
        self.slot = slot_of(tensor)
        self.device: Any = self.slot.device
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
        return f"Tensor {self.dtype}[{shape}] on webgpu:{self.device.id}"

    def span(self) -> tuple[int, int]:
        """Offset of the lowest element, and bytes to the end of the highest."""
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

    def note_not_run(self) -> None:
        """A kernel that a batch records computes the elements: they are not there yet."""
        slot, start, end = self.part()
        slot.faults.note(start, end, NotRun(slot.faults))

    # --- checks -----------------------------------------------------------------------

    def check_on(self, device: "Device") -> None:
        if self.device is not device:
            raise BufferError(
                f"{self} cannot be used on {device}: devices do not share buffers; await its "
                "to_host(), then upload it with to_device()"
            )

    def check_usage(self, flag: str, what: str) -> None:
        """BufferError that names the usage flag that the tensor's buffer lacks."""
        usage = int(self.slot.buffer.usage)
        if usage & USAGES[flag]:
            return
        has = " | ".join(name for name, bit in USAGES.items() if usage & bit)
        flags = has or "none of the flags needed here"
        raise BufferError(messages.lacks_usage(what, flag, self, flags))

    def check_same(self, target: "View") -> None:
        """BufferError unless the elements need no conversion to those of `target`."""
        if (self.dtype, self.padded) != (target.dtype, target.padded):
            raise BufferError(f"{self} is on the GPU: only uploads convert")

    def check_row_major(self) -> None:
        """BufferError for strided tensors, whose elements the shader would misread."""
        if self.strides is not None:
            raise BufferError(
                f"{self} has strides {self.strides}: on WebGPU it can be read, and nothing "
                "else; upload the result of to_host()"
            )

    def check_copy_source(self, what: str) -> None:
        """WebGPU copies whole words of 4 bytes at offsets that are multiples of 4."""
        self.check_row_major()
        self.check_usage("COPY_SRC", what)
        end = self.start + round_up(self.nbytes, 4)
        has = self.slot.buffer.size
        if self.start % 4 != 0 or end > has:
            raise BufferError(messages.unaligned_copy(what, self, self.start, end, has))

    def check_write(self, source: _core.Tensor, convert: bool) -> None:
        self.device.check_alive()
        misfit = misfit_of(source, self.tensor)
        if misfit and not (convert and source.shape == self.shape):
            raise BufferError(
                f"{dtype_of(source._dtype)} of shape {source.shape} cannot be written over "
                f"{self}: {misfit}"
            )
        if self.read_only:
            raise BufferError(f"{self} is read-only and cannot be written to")
        if self.strides is not None:
            raise BufferError(f"{self} is strided and cannot be written to")
        self.check_usage("COPY_DST", "writing")
        # Whole words are written: the rest of the last one must be padding.
        if not self.owns_words():
            raise BufferError(
                f"{self} shares words of 4 bytes with its neighbours (byte offset "
                f"{self.start}, {self.nbytes} bytes): WebGPU writes whole words"
            )


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
