"""Elements to and from GPUBuffers.

Up: in pieces, directly from the array's memory if its elements are contiguous;
otherwise C packs and converts them. Down: all tensors of a device in one submit and one
map, then one copy for each.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from .... import _core
from ...._layout import views
from ...._layout.dtype import DType, dtype_of
from ...checks import Tensors
from .. import messages
from ..errors.errors import Fault
from ..errors.operations import ask, check_usable, operate
from .buffers import allocate, copy_into, copy_of
from .views import Part, View, round_up, span_of, step_of

if TYPE_CHECKING:
    from ..device.device import Device


#: Bytes of a piece. Implementations take fresh staging memory for a large write, and
#: reuse that of small ones that were submitted: page faults cost more than the copy.
#: Pages write larger ones (js/src/webgpu/buffers/upload.ts), which block their thread for less.
_PIECE = 1 << 20
#: Memory for packing that is not in use. Each upload takes one for itself: others may
#: run meanwhile, in another thread or a finalizer.
_scratch: list[bytearray] = []

# --- to the GPU ---------------------------------------------------------------------------


def upload(tensor: _core.Tensor, device: "Device", dtype: DType) -> _core.Tensor:
    """A CPU tensor's elements, as `dtype`, in a new buffer."""
    padded = tensor.padded and dtype == dtype_of(tensor._dtype)
    step = step_of(dtype, padded)
    used = prod(tensor.shape) * step
    nbytes = round_up(used, 1)
    slot = allocate(device, nbytes, used=used)
    _fill(Part(slot, 0, nbytes), tensor, dtype)
    return slot.tensor(tensor.shape, dtype, padded)


def write(target: _core.Tensor, source: _core.Tensor, convert: bool) -> None:
    """Writes the elements of a tensor over those of a GPU tensor."""
    view = View(target)
    view.check_write(source, convert)
    if source.__dlpack_device__()[0] == 15:
        _write_from_gpu(view, View(source))
        return
    if source.padded != view.padded:
        source = _core._convert(source, source._dtype, view.padded)
    other = dtype_of(source._dtype) != view.dtype
    if other and view.dtype.code < 2:  # only integers can fail to fit
        for _ in _pieces(source, view.dtype):
            pass
    end = view.start + round_up(view.nbytes, 4)
    view.slot.filled = max(view.slot.filled, end)
    _fill(view.part(), source, view.dtype)


def _write_from_gpu(view: View, source: View) -> None:
    source.check_on(view.device)
    source.check_same(view)
    source.check_copy_source("copying")
    if source.nbytes % 4:  # a shader clears what was copied after the elements
        view.check_usage("STORAGE", "writing a part of a word")
    if source.slot.buffer is not view.slot.buffer:
        copy_into(source, view.slot, view.start)
        return
    # WebGPU does not copy within a buffer, so copy through another one.
    staging = copy_of(source)
    copied = staging.tensor(source.shape, source.dtype, source.padded)
    copy_into(View(copied), view.slot, view.start)


def _fill(part: Part, tensor: _core.Tensor, dtype: DType) -> None:
    slot, start, end = part
    device, nbytes = slot.device, end - start
    if nbytes == 0:
        return

    what, at = f"uploading {dtype}", start

    def calls() -> None:
        nonlocal at
        for memory in _pieces(tensor, dtype):
            to, at = at, at + memory.nbytes
            device.write(slot.buffer, to, memory)
            if memory.nbytes < nbytes:
                device.flush()

    try:
        operate(device, what, calls, writes=[part], fresh=True)
    except BaseException as error:
        if at > start:  # a part may be overwritten
            fault = Fault(f"{what} ended early: {type(error).__name__}")
            fault.reported = True
            slot.faults.note(start, end, fault)
        raise
    device.count("up", nbytes)


def _pieces(tensor: _core.Tensor, dtype: DType) -> Iterator[memoryview]:
    """The elements as `dtype`, in order: pieces of at most _PIECE bytes, or all of few.
    All but the last are whole words. Each is valid until the next."""
    same = dtype == dtype_of(tensor._dtype)
    whole = (dtype.bits * dtype.lanes) % 8 == 0 or tensor.padded
    if same and views.is_row_major(tensor.shape, tensor.strides):
        # The bits after packed elements are undefined.
        whole = (prod(tensor.shape) * step_of(dtype, tensor.padded)) % 1 == 0
        packed = tensor if whole else _core.from_dlpack(tensor, copy=True)
    elif whole:
        yield from _packed(tensor, dtype)
        return
    elif same:
        packed = _core.from_dlpack(tensor, copy=True)
    else:
        packed = _core._convert(tensor, dtype._packed, False)
    memory = memoryview(_core._raw(packed)[0])
    step = _PIECE if memory.nbytes > 2 * _PIECE else memory.nbytes
    for at in range(0, memory.nbytes, step):
        yield memory[at : at + step]


def _packed(tensor: _core.Tensor, dtype: DType) -> Iterator[memoryview]:
    """Pieces that C packs and converts."""
    first, size = 0, prod(tensor.shape)
    held = _core.from_dlpack(tensor)  # the caller may release its own meanwhile
    width = max(dtype.itemsize, dtype_of(tensor._dtype).itemsize)
    needed = min(size * width, _PIECE)
    try:
        scratch = _scratch.pop()
    except IndexError:
        scratch = bytearray()
    if len(scratch) < needed:
        scratch = bytearray(needed)
    while first < size:
        count, memory = _core._chunk(held, dtype._packed, first, scratch)
        yield memory
        first += count
    _scratch[:] = [scratch]  # one is enough


# --- back to the CPU ------------------------------------------------------------------------


# Rows further apart are copied one by one, as in JavaScript: commands for that
# cost as much as so many bytes.
_APART = 4096


class _Rows(NamedTuple):
    """What is copied of a tensor: `parts`, of which each begins `step` bytes after
    the one before. shape, strides: of a part; start: its lowest byte, of the first one."""

    shape: Sequence[int]
    strides: Sequence[int] | None
    parts: int
    step: int
    start: int
    nbytes: int


def _rows_of(view: View) -> _Rows:
    """The rows of a tensor if they are far apart; else one row with all of it."""
    if view.strides and view.size and view.step % 1 == 0:
        (count, *shape), (step, *strides) = view.shape, view.strides
        inner = None if views.is_row_major(shape, strides) else strides
        start, nbytes = span_of(shape, inner, view.step, view.start)
        step = int(step * view.step)
        if abs(step) - nbytes >= _APART:
            return _Rows(shape, inner, count, step, start, nbytes)
    return _Rows(view.shape, view.strides, 1, 0, *view.span())


class _Piece:
    """One tensor to read, and its place in the staging buffer, in which each row begins
    `pitch` bytes after the one before. Copies are of whole words."""

    def __init__(
        self, source: _core.Tensor, target: _core.Tensor, offset: int, view: View
    ) -> None:
        # Our own holds: the caller may release its tensors while the GPU works.
        self.source = _core.from_dlpack(source)
        self.target = _core.from_dlpack(target)
        self.view, self.offset = view, offset
        rows = self.rows = _rows_of(view)
        skip = 3 if rows.step % 4 else rows.start % 4
        self.pitch = round_up(skip + rows.nbytes, 4) if rows.nbytes else 0
        self.length = rows.parts * self.pitch
        start, length = view.span()
        needed, has = round_up(start + length, 4), view.slot.buffer.size
        if length and needed > has:
            raise BufferError(messages.unaligned_read(view, needed, has))

    def copies(self) -> Iterator[tuple[Any, int, int, int]]:
        """Of whole words: from where, to where in the staging buffer, and how many bytes."""
        rows = self.rows
        for i in range(rows.parts if self.length else 0):
            start = rows.start + i * rows.step
            skip = start % 4
            to, length = self.offset + i * self.pitch, round_up(skip + rows.nbytes, 4)
            yield self.view.slot.buffer, start - skip, to, length


class _Batch:
    """The tensors of one device that share one staging buffer and one map."""

    def __init__(self, device: "Device") -> None:
        self.device = device
        self.pieces: list[_Piece] = []
        self.bytes = 0

    def submit(self) -> None:
        """Submits all copies, and starts to map their bytes."""
        device = self.device
        faults = [piece.view.part().fault() for piece in self.pieces]
        ask(device, faults)
        if self.bytes == 0:
            return
        what = f"reading {', '.join(str(piece.view) for piece in self.pieces)}"
        check_usable(device, what, {piece.view.slot for piece in self.pieces})
        copies = [copy for piece in self.pieces for copy in piece.copies()]
        self.staged = device.stage(what, copies, self.bytes)

    async def finish(self, blocking: bool) -> None:
        if self.bytes == 0:
            return
        if blocking:
            self.staged.wait()
        else:
            await self.staged.finish()
        for piece in self.pieces:
            if piece.length:
                _land(piece, self.staged.memory(piece.offset, piece.length))
                self.device.count("down", piece.view.nbytes)
        self.staged.end()


def _land(piece: _Piece, memory: memoryview) -> None:
    """Copies the elements from mapped memory to the target."""
    view, rows = piece.view, piece.rows
    into: memoryview = memoryview(_core._raw(piece.target)[0])
    if rows.strides is not None and view.step % 1:
        raise BufferError(f"{view} is packed and strided: it cannot be read")
    size = view.size * view.step / rows.parts
    whole = int(size)
    for i in range(rows.parts):
        skip = i * piece.pitch + (rows.start + i * rows.step) % 4
        to = into[i * whole :]
        if rows.strides is not None:
            origin = skip + view.start - rows.start
            to[:whole] = _gathered(memory, rows, int(view.step), origin)
        else:
            to[:whole] = memory[skip : skip + whole]
            if size % 1:  # elements end within a byte: keep the rest of it
                mask = (1 << round(size % 1 * 8)) - 1
                to[whole] = memory[skip + whole] & mask | to[whole] & ~mask & 255


def _gathered(memory: memoryview, rows: _Rows, step: int, origin: int) -> memoryview:
    """Strided elements, contiguous: C packs them, as bytes. origin: of the first one."""
    strides = (*(stride * step for stride in rows.strides or ()), 1)
    seen = _core._view(_core.from_buffer(memory), (*rows.shape, step), strides, origin)
    return memoryview(_core._raw(_core.from_dlpack(seen, copy=True))[0])


def _plan(sources: Tensors, targets: Tensors, batches: list[_Batch]) -> None:
    """Appends the batches, of which the caller releases the pieces."""
    for source, target in zip(sources, targets, strict=True):
        view = View(source)
        view.device.check_alive()
        view.check_usage("COPY_SRC", "reading")
        piece = _Piece(source, target, 0, view)
        room = round_up(piece.length, 16)
        limit = view.device.limits["maxBufferSize"]
        for batch in batches:
            if batch.device is view.device and batch.bytes + room <= limit:
                break
        else:
            batch = _Batch(view.device)
            batches.append(batch)
        piece.offset = batch.bytes
        batch.pieces.append(piece)
        batch.bytes += room


async def read(sources: Tensors, targets: Tensors, blocking: bool = False) -> None:
    """Reads WebGPU tensors into row-major CPU tensors with as many bytes. The caller may
    release the sources meanwhile. blocking: it awaits nothing."""
    batches: list[_Batch] = []
    try:
        _plan(sources, targets, batches)
        for batch in batches:
            batch.submit()
        for batch in batches:
            await batch.finish(blocking)
    finally:
        for batch in batches:
            for piece in batch.pieces:
                piece.source.release()
                piece.target.release()
