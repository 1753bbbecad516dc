"""Backend of ../_backends/__init__.py for one page: each method is a message, or some."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from math import prod
from typing import Any

from .. import _core
from .._backends.desktop.buffers import View, check_on, step_of, tensor_over
from .._backends.desktop.state import Slot, slots
from .._backends.desktop.transfer import check_write
from .._layout import views
from .._layout.dtype import DType, dtype_of, parse_dtype
from .batch import Batch
from .kernel import Kernel, fact_of
from .link import Link
from .record import slot_for
from .replies import Reply, pending

_BYTES = parse_dtype("uint8")
#: Up to so many bytes an upload copies instead of waiting until the page has them.
_SMALL = 1 << 20


class PageBackend:
    """The GPU of the page of a link, whose device ids are its own."""

    def __init__(self, link: Link) -> None:
        self.link, self._record = link, link.record
        self._numbers = count(1)

    # --- facts ------------------------------------------------------------------------

    def features(self) -> dict[str, Any]:
        gpu = self._record.gpu
        found = {"available": True, "adapter": gpu.adapter}
        return {"browser": False, "webgpu": found, "canBlock": self.can_block()}

    def is_loaded(self) -> bool:
        return True

    def can_block(self) -> bool:
        return self.link.can_block()

    def block_on(self, awaitable: Coroutine[Any, Any, Any]) -> Any:
        raise _refused("waiting here for a coroutine")

    def stats(self) -> list[dict[str, Any]]:
        record = self._record
        found = [slot for slot in list(slots.values()) if slot.record is record]
        if record.lost is not None and not found:
            return []
        row: dict[str, Any] = {"device": f"webgpu:{record.id}", "lost": record.lost}
        row |= {"buffers": len(found), "bytes": sum(s.buffer.size for s in found)}
        row |= {"idleBytes": 0, "created": 0, "reused": 0, "up": record.up}
        row |= {"down": record.down, "copied": record.copied, "copies": record.copies}
        return [row | {"taken": 0}]

    # --- devices ----------------------------------------------------------------------

    def request_device(self, options: dict[str, Any]) -> Awaitable[int]:
        raise _refused("requesting devices: the page has one, `page.device`")

    def request_device_blocking(self, options: dict[str, Any]) -> int:
        raise _refused("requesting devices: the page has one, `page.device`")

    def use_device(self, gpu: Any) -> int:
        raise _refused("registering devices")

    def device(self, device_id: int) -> Any:
        return self._record.gpu

    def device_ids(self) -> Iterable[int]:
        return [] if self._record.is_lost() else [self._record.id]

    def limit(self, device_id: int, name: str) -> int:
        return int(getattr(self._record.gpu.limits, name))

    def has_feature(self, device_id: int, name: str) -> bool:
        return name in self._record.gpu.features

    # --- tensors ----------------------------------------------------------------------

    def empty(
        self, shape: tuple[int, ...], dtype: DType, device_id: int
    ) -> _core.Tensor:
        self._record.check_alive()
        op: dict[str, Any] = {"op": "empty", "shape": list(shape), "dtype": str(dtype)}
        unmade = [op]
        op["id"], slot = self._slot(shape, dtype, False, unmade)
        there = tensor_over(slot, shape, dtype)
        try:
            self.link.make(op, unmade)
        except BaseException:
            there.release()
            raise
        return there

    def upload(
        self, tensor: _core.Tensor, device_id: int, dtype: DType
    ) -> _core.Tensor:
        self._record.check_alive()
        padded = tensor.padded and dtype == dtype_of(tensor._dtype)
        op: dict[str, Any] = {
            "op": "take",
            "shape": list(tensor.shape),
            "dtype": str(dtype),
        }
        unmade = [op]
        number, slot = self._slot(tensor.shape, dtype, padded, unmade)
        name = f"t{number}"
        op |= {"id": number, "name": name, "padded": padded}
        there = tensor_over(slot, tensor.shape, dtype, padded)
        try:
            self._send(name, tensor, dtype, op, unmade)
        except BaseException:
            there.release()
            raise
        return there

    def write(self, target: _core.Tensor, source: _core.Tensor, convert: bool) -> None:
        view = check_write(target, source, convert)
        to = {"to": fact_of(view), "site": self.link.sites.here()}
        if source.__dlpack_device__()[0] == 15:
            there = View(source)
            check_on(self._record, there)
            if (there.dtype, there.padded) != (view.dtype, view.padded):
                raise BufferError(f"{source} is on the GPU: only uploads convert")
            self.link.op({"op": "write", **to, "source": fact_of(there)})
            self._record.count("copied", there.nbytes)
            return
        if source.padded != view.padded:
            source = _core._convert(source, source._dtype, view.padded)
        name = f"w{next(self._numbers)}"
        described = {"shape": list(view.shape), "dtype": str(view.dtype)}
        op = {"op": "write", **to, "name": name, "padded": view.padded, **described}
        self._send(name, source, view.dtype, op, [op])

    def _send(
        self,
        name: str,
        tensor: _core.Tensor,
        dtype: DType,
        op: dict[str, Any],
        unmade: list[Any],
    ) -> None:
        """Sends elements to the page, for an operation (Link.send). The caller may change its memory
        afterwards: small ones are copied, and larger ones have arrived then, or were
        copied where Python cannot wait. BufferError: the page refused them."""
        link = self.link
        nbytes = prod(tensor.shape) * step_of(dtype, tensor.padded)
        source, own = _source_of(tensor, dtype)
        waits = not own and nbytes > _SMALL and link.can_block()
        if not own and not waits:
            source = _core.from_dlpack(source, copy=True)
        sent: Future[None] = pending()
        try:
            link.send(name, source, op, unmade, sent)
            self._record.count("up", int(nbytes))
            if waits:
                link.wait(sent)
        except BaseException:
            link.drop(name)
            self._record.check_alive()
            raise
        finally:
            del sent  # an error in it has this frame

    async def read(
        self, sources: Sequence[_core.Tensor], targets: Sequence[_core.Tensor]
    ) -> None:
        reading = _Reading(self, sources, targets)
        try:
            reading.begin()
            await self.link.wait_for(reading.reply)
        finally:
            reading.end()

    def read_blocking(
        self, sources: Sequence[_core.Tensor], targets: Sequence[_core.Tensor]
    ) -> None:
        if not sources:
            return
        reading = _Reading(self, sources, targets)
        try:
            reading.begin()
            self.link.wait(reading.reply)
        finally:
            reading.end()

    def share(self, tensor: _core.Tensor, device_id: int) -> _core.Tensor:
        raise _core.CopyError(
            f"moving a tensor from cpu to webgpu:{device_id} copies it: the GPU is in the "
            "page"
        )

    def on_host(self, tensor: _core.Tensor) -> _core.Tensor:
        device_id = tensor.__dlpack_device__()[1]
        raise _core.CopyError(
            f"moving a tensor from webgpu:{device_id} to cpu copies it: the GPU is in the "
            "page"
        )

    async def settle(self, device_id: int) -> None:
        await self.link.answer("settle")

    def _slot(
        self, shape: Sequence[int], dtype: DType, padded: bool, unmade: list[Any]
    ) -> tuple[int, Slot]:
        """A number of the page's, and the slot. unmade: empty as soon as the page has it
        (Link.make)."""
        number = next(self._numbers)
        gone = partial(self.link.let_go, "tensor", number, unmade)
        return number, slot_for(self._record, number, prod(shape), dtype, padded, gone)

    # --- GPUBuffers -------------------------------------------------------------------

    def from_gpu_buffer(
        self,
        buffer: Any,
        shape: tuple[int, ...],
        dtype: DType,
        device_id: int,
        byte_offset: int,
        release: Callable[[], Any] | None,
    ) -> _core.Tensor:
        raise _refused("wrapping GPUBuffers")

    def gpu_buffer(self, tensor: _core.Tensor) -> Any:
        raise _refused("handing out GPUBuffers")

    def is_pooled(self, tensor: _core.Tensor) -> bool:
        return True

    def from_wgpu(self, buffer: Any) -> tuple[Any, int]:
        raise _refused("wrapping GPUBuffers")

    def to_wgpu(self, tensor: _core.Tensor) -> Any:
        raise _refused("handing out GPUBuffers")

    # --- work -------------------------------------------------------------------------

    def kernel(
        self,
        wgsl: str,
        entry: str,
        label: str,
        check: bool,
        device_id: int,
        parts: Sequence[tuple[str, int, int]],
    ) -> Kernel:
        return Kernel(self.link, next(self._numbers), wgsl, entry, label, check, parts)

    def batch(self, device_id: int) -> Batch:
        return Batch(self.link)

    async def from_image(
        self, source: Any, device_id: int, dtype: DType, channels: int
    ) -> _core.Tensor:
        raise _refused("images: upload an array of their pixels")

    # --- what is kept between visits --------------------------------------------------

    async def kept(self, folder: str) -> dict[str, bytes] | None:
        return None

    async def keep(self, folder: str, name: str, data: bytes) -> None:
        raise _refused("keeping data")


def _source_of(tensor: _core.Tensor, dtype: DType) -> tuple[_core.Tensor, bool]:
    """The elements as bytes or, if they are not contiguous, as they are; whether it is
    a copy."""
    if dtype != dtype_of(tensor._dtype):
        return _core._raw(_core._convert(tensor, dtype._packed, False))[0], True
    row_major = views.is_row_major(tensor.shape, tensor.strides)
    packed = dtype.bits * dtype.lanes % 8 != 0 and not tensor.padded
    if row_major and not packed:
        return _core._raw(tensor)[0], False
    if dtype in _SIMPLE:
        return tensor, False  # the wire packs it piece by piece
    return _core._raw(_core.from_dlpack(tensor, copy=True))[0], True


#: Dtypes that the wire packs.
_SIMPLE = frozenset(
    f"{kind}{bits}"
    for kind, widths in (
        ("int", (8, 16, 32, 64)),
        ("uint", (8, 16, 32, 64)),
        ("float", (16, 32, 64)),
    )
    for bits in widths
)


class _Reading:
    """Elements that the page sends."""

    def __init__(
        self,
        backend: PageBackend,
        sources: Sequence[_core.Tensor],
        targets: Sequence[_core.Tensor],
    ) -> None:
        self._link = backend.link
        self._link.record.check_alive()
        self._facts = [fact_of(View(source)) for source in sources]
        self._landings = {
            f"r{next(backend._numbers)}": _core._raw(target)[0] for target in targets
        }
        self.reply = Reply()

    def begin(self) -> None:
        link, landings = self._link, self._landings
        link.read(self.reply, landings, what=self._facts, site=link.sites.here())
        for landing in landings.values():
            link.record.count("down", landing.shape[0])

    def end(self) -> None:
        self._link.end(self.reply, self._landings)


def _refused(what: str) -> BufferError:
    return BufferError(f"the GPU is in the page, which does not support {what}")
