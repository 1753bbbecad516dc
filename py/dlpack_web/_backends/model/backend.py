"""A backend over the devices of a driver."""

import threading
from collections.abc import Callable, Coroutine, Iterable
from math import prod
from typing import Any

from ..._core import CopyError, Tensor
from ..._layout.dtype import DType
from .. import javascript, owners
from ..checks import NO_JSPI, ShaderSource, Tensors
from . import messages
from .buffers.buffers import adopt, allocate
from .buffers.table import exposed, slot_of, slots
from .buffers.transfer import read, upload, write
from .buffers.views import View, round_up, step_of
from .device.device import Device, new_id
from .kernels.batch import Calls
from .kernels.kernels import Kernel

#: Held while a device is registered.
_registering = threading.RLock()


class Backend:
    """What dlpack_web needs of its environment; the browser has the same as functions. A
    driver adds how devices are requested, and their devices, kernels and batches. What it
    does not add is refused. Devices are identified by their ids; the caller owns the
    tensors that are returned."""

    kernel_type: type[Kernel]
    batch_type: type[Calls[Any]]
    cannot_block: str = NO_JSPI  # follows "the tensor is on webgpu:0"
    #: Whether elements arrive in parts, of which the last ones may not come.
    reads_in_parts: bool = False
    #: Why CPU and GPU share no memory, for messages.
    not_shared = ""
    #: What is refused, where devices cannot be requested.
    no_requests = "requesting devices"

    def __init__(self) -> None:
        #: Devices by id. Ids stay valid: none is removed.
        self.devices: dict[int, Device] = {}

    def ready(self) -> None:
        """BufferError: what this backend needs is missing."""

    # --- features and statistics ------------------------------------------------------

    def features(self) -> dict[str, Any]:
        raise NotImplementedError

    def is_loaded(self) -> bool:
        return bool(self.devices)

    def can_block(self) -> bool:
        return True

    def block_on(self, awaitable: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine that does not wait."""
        try:
            awaitable.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a blocking call awaited something")

    def stats(self) -> list[dict[str, Any]]:
        """Statistics of each device, in the order of their ids."""
        self.ready()
        return [self._row(device) for device in [*self.devices.values()]]

    def _row(self, device: Device) -> dict[str, Any]:
        found = [slot for slot in [*slots.values()] if slot.device is device]
        moved = "up", "down", "copied", "copies"
        return {
            "device": f"webgpu:{device.id}",
            "lost": device.lost if device.is_lost() else None,
            "buffers": len(found),
            "bytes": sum(slot.buffer.size for slot in found),
            "idleBytes": device.pool.idle_bytes,
            "created": device.pool.created,
            "reused": device.pool.reused,
            **{name: getattr(device, name) for name in moved},
            "taken": device.exposed,
        }

    # --- devices ----------------------------------------------------------------------

    def registered(self, device_id: int) -> Device:
        """The device with an id; BufferError lists the registered ones."""
        self.ready()
        found = self.devices.get(device_id)
        if found is not None:
            return found
        there = ", ".join(f"webgpu:{each}" for each in [*self.devices])
        raise BufferError(
            messages.not_registered(device_id, there)
            if there
            else f"webgpu:{device_id} is not registered: `await "
            "dlpack_web.webgpu.request_device()` first"
        )

    def register(
        self,
        gpu: Any,
        make: Callable[[], Device],
        options: dict[str, Any] | None = None,
    ) -> Device:
        """A GPUDevice, registered; the same object keeps its id. options: those of a request;
        if another request with them was faster, the result is its device."""
        for device in [*self.devices.values()]:
            device.is_lost()
        found = self._matching(gpu, options)
        if found is not None:
            return found
        made = make()
        with _registering:
            found = self._matching(gpu, options)
            if found is not None:
                return found
            made.id = new_id()
            self.devices[made.id], owners[made.id] = made, self
            return made

    def _matching(self, gpu: Any, options: dict[str, Any] | None) -> Device | None:
        devices = [*self.devices.values()]
        same = next((device for device in devices if device.gpu is gpu), None)
        return same or (None if options is None else self._reusable(options))

    @classmethod
    def forget_lost(cls, most: int) -> None:
        """Backends of this class whose devices are lost stay to explain that; of those that no
        tensor needs, only the last ones do, at most so many."""
        used = {slot.device for slot in [*slots.values()]}
        gone = [
            number
            for number, each in [*owners.items()]
            if isinstance(each, cls)
            and (device := each.devices[number]).is_lost()
            and device not in used
        ]
        for number in gone[:-most]:
            owners.pop(number, None)

    def requested(self, options: dict[str, Any]) -> Device | None:
        """The existing device for a request: it works and was made with the same
        options; without options the first device, the default of "webgpu". None: a new
        one is needed."""
        for device in [*self.devices.values()]:
            device.is_lost()
        return self._reusable(options)

    def _reusable(self, options: dict[str, Any]) -> Device | None:
        for device in [*self.devices.values()]:
            if (not options or device.options == options) and device.lost is None:
                return device
        return None

    async def request_device(self, options: dict[str, Any]) -> int:
        raise self.refused(self.no_requests)

    def request_device_blocking(self, options: dict[str, Any]) -> int:
        raise self.refused(self.no_requests)

    def use_device(self, gpu: Any) -> int:
        raise self.refused("registering devices")

    def device(self, device_id: int) -> Any:
        return self.registered(device_id).gpu

    def device_ids(self) -> Iterable[int]:
        self.ready()
        devices = [*self.devices.values()]
        return [device.id for device in devices if not device.is_lost()]

    def limit(self, device_id: int, name: str) -> int:
        return int(self.registered(device_id).limits[name])

    def has_feature(self, device_id: int, name: str) -> bool:
        return name in self.registered(device_id).features

    def error_count(self, device_id: int) -> int:
        return self.registered(device_id).error_count

    # --- tensors ----------------------------------------------------------------------

    def empty(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        device_id: int,
        recorded: bool = False,
    ) -> Tensor:
        """Zeros. recorded: the result of a kernel that a batch records."""
        device = self.registered(device_id)
        used = prod(shape) * step_of(dtype, False)
        slot = allocate(device, round_up(used, 1), used=used, zeros=True)
        made = slot.tensor(shape, dtype)
        if recorded:
            View(made).note_not_run()
        return made

    def upload(self, tensor: Tensor, device_id: int, dtype: DType) -> Tensor:
        return upload(tensor, self.registered(device_id), dtype)

    def write(self, target: Tensor, source: Tensor, convert: bool) -> None:
        self.ready()
        write(target, source, convert)

    async def read(self, sources: Tensors, targets: Tensors) -> None:
        self.ready()
        await read(sources, targets)

    def read_blocking(self, sources: Tensors, targets: Tensors) -> None:
        self.ready()
        Backend.block_on(self, read(sources, targets, blocking=True))

    def share(self, tensor: Tensor, device_id: int) -> Tensor:
        """For memory that CPU and GPU share; else CopyError."""
        raise CopyError(
            f"moving a tensor from cpu to webgpu:{device_id} copies it{self.not_shared}"
        )

    def on_host(self, tensor: Tensor) -> Tensor | None:
        """The CPU tensor of shared memory, when the GPU has finished; else CopyError or
        None."""
        device_id = tensor.__dlpack_device__()[1]
        raise CopyError(
            f"moving a tensor from webgpu:{device_id} to cpu copies it{self.not_shared}"
        )

    async def settle(self, device_id: int) -> None:
        """Waits until all writes to a device have arrived."""
        self.registered(device_id).settle()

    # --- GPUBuffers -------------------------------------------------------------------

    def from_gpu_buffer(
        self,
        buffer: Any,
        shape: tuple[int, ...],
        dtype: DType,
        device_id: int,
        byte_offset: int,
        release: Callable[[], Any] | None,
    ) -> Tensor:
        device = self.registered(device_id)
        return adopt(device, buffer, shape, dtype, byte_offset, release)

    def gpu_buffer(self, tensor: Tensor) -> Any:
        self.ready()
        return exposed(slot_of(tensor))

    def is_pooled(self, tensor: Tensor) -> bool:
        self.ready()
        return slot_of(tensor).own

    def from_wgpu(self, buffer: Any) -> tuple[Any, int]:
        raise self.refused("wrapping GPUBuffers")

    def to_wgpu(self, tensor: Tensor) -> Any:
        raise self.refused("handing out GPUBuffers")

    # --- work -------------------------------------------------------------------------

    def kernel(self, source: ShaderSource, device_id: int) -> Kernel:
        return self.kernel_type(self.registered(device_id), source)

    def batch(self, device_id: int) -> Calls[Any]:
        return self.batch_type(self.registered(device_id))

    async def from_image(
        self, source: Any, device_id: int, dtype: DType, channels: int
    ) -> Tensor:
        raise self.refused("images: upload an array of their pixels")

    def frames(self, source: Any, device_id: int, dtype: DType, channels: int) -> Any:
        return javascript.calls()  # raises: there is none outside of pages

    # --- the cache between visits -----------------------------------------------------

    async def cached(self, folder: str) -> dict[str, bytes] | None:
        """All of a folder, by name; None: nothing can be cached here."""
        return None

    async def cache(self, folder: str, name: str, data: bytes) -> None:
        raise BufferError("only browsers keep data between visits")

    def refused(self, what: str) -> BufferError:
        return BufferError(f"this GPU does not support {what}")
