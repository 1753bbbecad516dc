"""The desktop's backend: WebGPU in ordinary CPython, over wgpu-py.

It is a driver of ../model, whose faults, checks and copies are the same as in the browser
(js/src/webgpu). It is loaded when WebGPU is first used, and wgpu itself (wgpu.py) when it
is first needed.
"""

import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..._core import Tensor
from ..._layout.dtype import DType
from ..model import backend as model
from ..model.buffers.table import exposed
from ..model.buffers.views import View
from ..model.device.device import Device as ModelDevice
from ..model.device.request import Request
from . import host, idle, wgpu
from .device import Device
from .images import from_image
from .kernel import Batch, Kernel


class Backend(model.Backend):
    kernel_type, batch_type = Kernel, Batch

    def __init__(self) -> None:
        super().__init__()
        self.devices = idle.devices

    def ready(self) -> None:
        wgpu.wgpu()

    # --- features and statistics ------------------------------------------------------

    def features(self) -> dict[str, Any]:
        found: dict[str, Any] = {"browser": False}
        where = f"this is {sys.implementation.name} on {sys.platform}, not a browser"
        try:
            package = wgpu.wgpu()
        except BufferError as error:
            return found | {
                "webgpu": {"available": False, "reason": f"{where}: {error}"}
            }
        try:
            adapter = package.gpu.request_adapter_sync()
        except wgpu.failures() as error:
            reason = f"{where}, and wgpu found no adapter: {error}"
            return found | {"webgpu": {"available": False, "reason": reason}}
        features = wgpu.features(adapter)
        return found | {
            "webgpu": {
                "available": True,
                "adapter": adapter.summary,
                "maxBufferSize": wgpu.limits(adapter)["maxBufferSize"],
            },
            "shaderF16": "shader-f16" in features,
            "timestampQuery": "timestamp-query" in features,
            "canBlock": True,
        }

    def block_on(self, awaitable: Coroutine[Any, Any, Any]) -> Any:
        """Within an event loop, which wgpu would wait for, in another thread."""
        if sys.get_asyncgen_hooks()[0] is None:
            return super().block_on(awaitable)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(super().block_on, awaitable).result()

    # --- devices ----------------------------------------------------------------------

    async def request_device(self, options: dict[str, Any]) -> int:
        return (await self._request(options, blocking=False)).id

    def request_device_blocking(self, options: dict[str, Any]) -> int:
        request = self._request(options, blocking=True)
        found: ModelDevice = super().block_on(request)
        return found.id

    async def _request(self, options: dict[str, Any], *, blocking: bool) -> ModelDevice:
        asked = Request(options)
        found = self.requested(asked.options)
        if found is not None:
            return found
        adapter = await wgpu.adapter_of(asked.of_adapter(), blocking=blocking)
        allowed = wgpu.limits(adapter)
        limits = asked.limits(allowed)
        features = asked.features(wgpu.features(adapter))
        gpu = await wgpu.device_from(
            adapter, asked.label, features, limits, blocking=blocking
        )
        found = self.register(
            gpu, lambda: Device(gpu, allowed, asked.options), asked.options
        )
        if found.gpu is not gpu:  # another request was faster
            gpu.destroy()
        return found

    def use_device(self, gpu: Any) -> int:
        if not isinstance(gpu, wgpu.wgpu().GPUDevice):
            raise TypeError(f"a wgpu.GPUDevice is needed, not {gpu!r}")
        return self.register(gpu, lambda: Device(gpu)).id

    # --- tensors ----------------------------------------------------------------------

    def share(self, tensor: Tensor, device_id: int) -> Tensor:
        return host.share(tensor, self.registered(device_id))

    def on_host(self, tensor: Tensor) -> Tensor:
        self.ready()
        return host.on_host(tensor)

    # --- work -------------------------------------------------------------------------

    async def from_image(
        self, source: Any, device_id: int, dtype: DType, channels: int
    ) -> Tensor:
        return from_image(self.registered(device_id), source, dtype, channels)

    # --- GPUBuffers -------------------------------------------------------------------

    def from_wgpu(self, buffer: Any) -> tuple[Any, int]:
        if not wgpu.is_buffer(buffer):
            raise TypeError(f"from_wgpu takes a wgpu.GPUBuffer, not {buffer!r}")
        return buffer, self.use_device(wgpu.device_of(buffer))

    def to_wgpu(self, tensor: Tensor) -> Any:
        self.ready()
        view = View(tensor)
        view.check_row_major()
        return exposed(view.slot)


backend = Backend()
