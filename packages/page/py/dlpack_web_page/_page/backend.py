"""The driver of a page (dlpack_web.backends): each method is a message, or some."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from math import ceil, prod
from typing import Any

from dlpack_web import DType, Tensor, backends, from_buffer, from_dlpack
from dlpack_web.backends import Slot, View, step_of
from dlpack_web.internal import converted, is_row_major, memory_of

from .device import Buffer, refused
from .kernel import Batch, Kernel, describe
from .link import Link
from .replies import Reply, end, pending

#: Up to so many bytes an upload copies instead of waiting until the page has them.
_SMALL = 1 << 20


type Tensors = Sequence[Tensor]


class PageBackend(backends.Backend):
    """The GPU of the page of a link, which has one device."""

    kernel_type, batch_type = Kernel, Batch
    cannot_block = ", in a page whose messages arrive only while a cell awaits"
    reads_in_parts = True
    not_shared = ": the GPU is in the page"
    no_requests = "requesting devices: the page has one, `page.device`"

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link, self._device = link, link.device
        self.register(link.device.gpu, lambda: link.device)

    # --- properties -------------------------------------------------------------------

    def features(self) -> dict[str, Any]:
        gpu = self._device.gpu
        found = {"available": True, "adapter": gpu.adapter}
        return {"browser": False, "webgpu": found, "canBlock": self.can_block()}

    def can_block(self) -> bool:
        return self.link.can_block()

    def block_on(self, awaitable: Coroutine[Any, Any, Any]) -> Any:
        """In another thread, which has an event loop of its own."""
        done = pending()

        def run() -> None:
            try:
                end(done, asyncio.run(awaitable))
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                end(done, error)

        threading.Thread(target=run, daemon=True).start()
        return self.link.wait(done)

    def stats(self) -> list[dict[str, Any]]:
        (row,) = super().stats()
        return [row] if row["lost"] is None or row["buffers"] else []

    # --- tensors ----------------------------------------------------------------------

    def empty(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        device_id: int,
        recorded: bool = False,
    ) -> Tensor:
        def send(op: dict[str, Any], unmade: list[Any]) -> None:
            op["recorded"] = recorded
            self.link.make(op, unmade)

        made = self._new("empty", shape, dtype, False, send)
        if recorded:
            View(made).note_not_run()
        return made

    def upload(self, tensor: Tensor, device_id: int, dtype: DType) -> Tensor:
        padded = tensor.padded and dtype == tensor.dtype

        def send(op: dict[str, Any], unmade: list[Any]) -> None:
            name = f"t{op['id']}"
            op |= {"name": name, "padded": padded}
            self._send(name, tensor, dtype, op, unmade)

        return self._new("take", tensor.shape, dtype, padded, send)

    def _new(
        self,
        kind: str,
        shape: tuple[int, ...],
        dtype: DType,
        padded: bool,
        send: Callable[[dict[str, Any], list[Any]], None],
    ) -> Tensor:
        """A tensor that an operation makes. send: sends that, with a list which is empty
        as soon as the page has it (Link.make). BufferError: it is too large."""
        self._device.check_alive()
        number = next(self.link.numbers)
        op = {"op": kind, "id": number, "shape": list(shape), "dtype": str(dtype)}
        unmade = [op]
        gone = partial(self.link.let_go, "tensor", number, unmade)
        used = prod(shape) * step_of(dtype, padded)
        buffer = Buffer(number, self._device.size_for(ceil(used)))
        slot = Slot(self._device, buffer, own=False, used=used, release=gone)
        there = slot.tensor(shape, dtype, padded)
        try:
            send(op, unmade)
        except BaseException:
            there.release()
            raise
        return there

    def write(self, target: Tensor, source: Tensor, convert: bool) -> None:
        view = View(target)
        view.check_write(source, convert)
        to = {"to": describe(view), "site": self.link.sites.here()}
        if source.__dlpack_device__()[0] == 15:
            there = View(source)
            there.check_on(self._device)
            there.check_same(view)
            there.check_copy_source("copying")
            self.link.op({"op": "write", **to, "source": describe(there)})
            self._device.count("copied", there.nbytes)
            return
        if source.padded != view.padded:
            source = converted(source, source.dtype, view.padded)
        name = f"w{next(self.link.numbers)}"
        described = {"shape": list(view.shape), "dtype": str(view.dtype)}
        op = {"op": "write", **to, "name": name, "padded": view.padded, **described}
        self._send(name, source, view.dtype, op, [op])

    def _send(
        self,
        name: str,
        tensor: Tensor,
        dtype: DType,
        op: dict[str, Any],
        unmade: list[Any],
    ) -> None:
        """Sends elements to the page, for an operation (Link.send). The caller may change
        its memory afterwards: small ones are copied, and larger ones have arrived then,
        or were copied where Python cannot wait. BufferError: the page refused them."""
        link = self.link
        nbytes = prod(tensor.shape) * step_of(dtype, tensor.padded)
        source, own = _source_of(tensor, dtype)
        waits = not own and nbytes > _SMALL and link.can_block()
        if not own and not waits:
            source = from_dlpack(source, copy=True)
        sent: Future[None] = pending()
        try:
            link.send(name, source, op, unmade, sent)
            self._device.count("up", int(nbytes))
            if waits:
                link.wait(sent)
        except BaseException:
            link.drop(name)
            self._device.check_alive()
            raise
        finally:
            del sent  # an error in it has this frame

    async def read(self, sources: Tensors, targets: Tensors) -> None:
        reading = _Reading(self, sources, targets)
        try:
            reading.begin()
            await self.link.wait_for(reading.reply)
        finally:
            reading.end()

    def read_blocking(self, sources: Tensors, targets: Tensors) -> None:
        if not sources:
            return
        reading = _Reading(self, sources, targets)
        try:
            reading.begin()
            self.link.wait(reading.reply)
        finally:
            reading.end()

    async def settle(self, device_id: int) -> None:
        await self.link.answer("settle")

    # --- GPUBuffers -------------------------------------------------------------------

    def gpu_buffer(self, tensor: Tensor) -> Any:
        raise self.refused("handing out GPUBuffers")

    def is_pooled(self, tensor: Tensor) -> bool:
        return True

    def frames(self, source: Any, device_id: int, dtype: DType, channels: int) -> Any:
        raise self.refused("videos: upload arrays of their pixels")

    def refused(self, what: str) -> BufferError:
        return refused(what)


def _source_of(tensor: Tensor, dtype: DType) -> tuple[Tensor, bool]:
    """The elements, as bytes if they are contiguous; whether it is a copy."""
    if dtype != tensor.dtype:
        return _bytes_of(converted(tensor, dtype)), True
    packed = dtype.bits * dtype.lanes % 8 != 0 and not tensor.padded
    if is_row_major(tensor) and not packed:
        return _bytes_of(tensor), False
    if dtype in _SIMPLE:
        return tensor, False  # the wire packs it piece by piece
    return _bytes_of(from_dlpack(tensor, copy=True)), True


def _bytes_of(tensor: Tensor) -> Tensor:
    """The same memory, as bytes."""
    return from_buffer(memory_of(tensor))


#: Dtypes that the wire packs.
_SIMPLE = frozenset(
    f"{kind}{bits}"
    for kind, most in (("int", 8), ("uint", 8), ("float", 16))
    for bits in (8, 16, 32, 64)
    if bits >= most
)


class _Reading:
    """Elements that the page sends."""

    def __init__(
        self, backend: PageBackend, sources: Tensors, targets: Tensors
    ) -> None:
        self._link = backend.link
        self._link.device.check_alive()
        self._described = [describe(View(source)) for source in sources]
        self._landings = {
            f"r{next(backend.link.numbers)}": _bytes_of(target) for target in targets
        }
        self.reply = Reply()

    def begin(self) -> None:
        link, landings = self._link, self._landings
        link.read(self.reply, landings, what=self._described, site=link.sites.here())
        for landing in landings.values():
            link.device.count("down", landing.shape[0])

    def end(self) -> None:
        self._link.end(self.reply, self._landings)
