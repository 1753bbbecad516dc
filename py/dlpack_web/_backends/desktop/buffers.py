"""GPUBuffers of tensors on the desktop: making, lending, checking and copying them
(js/src/webgpu/buffers.ts)."""

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from ... import _core
from ..._layout import views
from ..._layout.dtype import DType, dtype_of
from ..model import messages
from . import wgpu
from .state import (
    DEFAULT_USAGE,
    USAGES,
    Record,
    Slot,
    faults_of,
    new_handle,
    slot_of,
    slots,
)
from .work import Part, attempt, check_usable, operate


def round_up(n: float, step: int) -> int:
    """The least multiple of `step` that is at least `n`."""
    return ceil(n / step) * step if isinstance(n, float) else -(-n // step) * step


def step_of(dtype: DType, padded: bool) -> float:
    """Bytes from an element to the next; a fraction if elements share bytes."""
    bits = 8 if padded else dtype.bits * dtype.lanes
    return bits // 8 if bits % 8 == 0 else bits / 8


class View:
    """The properties of a WebGPU tensor, looked up once."""

    def __init__(self, tensor: _core.Tensor) -> None:
        self.tensor = tensor
        self.slot = slot_of(tensor)
        self.record = self.slot.record
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


# --- making -------------------------------------------------------------------------------

_ZEROS = bytes(4096)


def allocate(
    record: Record, nbytes: int, *, used: float | None = None, zeros: bool = False
) -> Slot:
    """A buffer for `nbytes`, padded to a multiple of 16 and never empty. The bytes
    after `nbytes` are 0; with `zeros` all are. BufferError if the device has no
    room."""
    record.check_alive()
    size = max(round_up(nbytes, 16), 16)
    limit = record.limits["max-buffer-size"]
    if size > limit:
        most = record.adapter_limits and record.adapter_limits["max-buffer-size"]
        of_adapter = f" and its adapter {most}" if most else ""
        way = messages.larger_buffer(size)
        if most and size > most:
            way = messages.no_larger_buffer()
        raise BufferError(
            messages.buffer_too_large(size, record, limit, of_adapter, way)
        )
    words = round_up(nbytes, 4)
    idle = record.pool.take(size, DEFAULT_USAGE)
    if idle is not None:
        buffer, dirty = idle
        attempt(
            record,
            "clearing a GPUBuffer",
            lambda: _clear(record, buffer, 0 if zeros else words, dirty),
        )
    else:
        buffer = attempt(
            record,
            f"createBuffer for {size} bytes",
            lambda: record.gpu.create_buffer(size=size, usage=DEFAULT_USAGE),
        )
    total = nbytes if used is None else used
    return Slot(record, buffer, own=True, used=total, filled=words)


def _clear(record: Record, buffer: Any, start: int, dirty: int) -> None:
    """Writes zeros from `start` to the end of what earlier tensors may have left."""
    end = min(round_up(dirty, 4), buffer.size)
    if end - start > 4 * len(_ZEROS):
        encoder = record.gpu.create_command_encoder()
        encoder.clear_buffer(buffer, start, end - start)
        record.gpu.queue.submit([encoder.finish()])
        return
    for at in range(start, end, len(_ZEROS)):
        count = min(len(_ZEROS), end - at)
        record.gpu.queue.write_buffer(buffer, at, _ZEROS, 0, count)


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


def adopt(
    record: Record,
    buffer: Any,
    shape: tuple[int, ...],
    dtype: DType,
    byte_offset: int,
    release: Callable[[], Any] | None,
) -> _core.Tensor:
    """A tensor over a foreign buffer."""
    if not wgpu.is_buffer(buffer):
        raise TypeError(f"a wgpu.GPUBuffer is needed, not {buffer!r}")
    if release is not None and not callable(release):
        raise TypeError(f"release must be a function, not {release!r}")
    record.check_alive()
    if wgpu.device_of(buffer) is not record.gpu:
        raise BufferError(
            f"the GPUBuffer belongs to another device, not to {record}: devices do not "
            "share buffers; pass device=use_device(...) of its own device"
        )
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
        record,
        buffer,
        own=False,
        used=used,
        end=end,
        release=release,
        faults=faults_of(buffer),
    )
    check_usable(record, "taking over a GPUBuffer", [slot])
    return tensor_over(slot, shape, dtype, byte_offset=byte_offset)


# --- checks ---------------------------------------------------------------------------------


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


def check_row_major(view: View) -> None:
    """BufferError for strided tensors, whose elements the shader would misread."""
    if view.strides is not None:
        raise BufferError(
            f"{view} has strides {view.strides}: on WebGPU it can be read, and nothing "
            "else; upload what to_host() gives"
        )


def check_copy_source(view: View, what: str) -> None:
    """WebGPU copies whole words of 4 bytes at offsets that are multiples of 4."""
    check_row_major(view)
    check_usage(view, "COPY_SRC", what)
    end = view.start + round_up(view.nbytes, 4)
    has = view.slot.buffer.size
    if view.start % 4 != 0 or end > has:
        raise BufferError(messages.unaligned_copy(what, view, view.start, end, has))


# --- copies from buffer to buffer -------------------------------------------------------------


def copy_of(view: View, least: int = 0) -> Slot:
    """A new buffer with a tensor's elements, followed by zeros."""
    check_copy_source(view, "copying")
    slot = allocate(
        view.record, max(view.nbytes, least), used=view.size * view.step, zeros=True
    )
    copy_into(view, slot, 0)
    return slot


def copy_into(view: View, target: Slot, offset: int) -> None:
    """Copies a tensor's elements into another buffer of the same device. The rest of
    their last word there is padding, and becomes 0."""
    if view.nbytes == 0:
        return
    source, record = view.slot, view.record
    gpu = record.gpu
    record.count("copied", view.nbytes)

    def calls() -> None:
        encoder = gpu.create_command_encoder()
        length = round_up(view.nbytes, 4)
        encoder.copy_buffer_to_buffer(
            source.buffer, view.start, target.buffer, offset, length
        )
        if view.nbytes % 4 != 0:
            mask_tail(record, encoder, target.buffer, offset, view.nbytes)
        gpu.queue.submit([encoder.finish()])

    operate(
        record,
        f"copying {view}",
        calls,
        reads=[view.part()],
        writes=[Part(target, offset, offset + view.nbytes)],
        fresh=True,
    )


_MASK = """
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1)
fn main() {
  words[arrayLength(&words) - 1] &= MASK;
}"""


def mask_tail(
    record: Record, encoder: Any, buffer: Any, offset: int, nbytes: int
) -> None:
    """Sets to 0 the bytes after `nbytes` (no multiple of 4) from `offset`, up to the
    end of the word."""
    gpu, pipeline = record.gpu, record.masks.get(nbytes % 4)
    if pipeline is None:
        mask = (1 << 8 * (nbytes % 4)) - 1
        module = gpu.create_shader_module(code=_MASK.replace("MASK", f"{mask}u"))
        pipeline = record.masks[nbytes % 4] = gpu.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": "main"}
        )
    word = offset + nbytes - nbytes % 4
    start = word - word % record.limits["min-storage-buffer-offset-alignment"]
    resource = {"buffer": buffer, "offset": start, "size": word + 4 - start}
    group = gpu.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": resource}],
    )
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(1)
    compute.end()
