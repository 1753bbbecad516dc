"""WebGPU devices and kernels. Everything here needs a browser."""

from collections.abc import Sequence
from typing import Any

from . import _browser, _core
from ._device import Device, DLDeviceType
from ._tensor import Tensor

__all__ = ["Kernel", "request_device", "use_device"]


async def request_device(**limits: int) -> Device:
    """Asks the browser for a GPUDevice and registers it for tensors.

    limits: WebGPU's names, for example maxBufferSize=2**30 (bytes); those not named are
    WebGPU's defaults. BufferError says why there is no device: no WebGPU, no adapter,
    or a limit above the adapter's. TypeError: no such limit.
    """
    promise = _browser.call("requestDevice", _browser.options(limits))
    return Device(DLDeviceType.kDLWebGPU, await _browser.finish(promise))


def use_device(js_device: Any) -> Device:
    """Registers a GPUDevice (JsProxy) made elsewhere; the same device gets the same id.

    It stays its maker's: it is never destroyed here.
    """
    return Device(DLDeviceType.kDLWebGPU, _browser.call("useDevice", js_device))


class Kernel:
    """A WGSL compute shader whose bindings are tensors.

    Calling it binds tensor i at `@group(0) @binding(i)` and submits; it does not wait.
    The shader is compiled once per device. Errors that WebGPU finds later (WGSL that
    does not compile, say) are raised by the next `await t.to_host()`.
    """

    def __init__(self, wgsl: str, entry: str = "main") -> None:
        self._wgsl, self._entry = wgsl, entry
        self._compiled: dict[int, Any] = {}  # by device id

    def __call__(
        self, *tensors: Tensor, workgroups: int | Sequence[int] = (1, 1, 1)
    ) -> None:
        counts = (workgroups,) if isinstance(workgroups, int) else tuple(workgroups)
        if not 1 <= len(counts) <= 3:
            raise ValueError(
                f"workgroups must be one to three counts, not {workgroups!r}"
            )
        x, y, z = (*counts, 1, 1)[:3]
        device = self._common_device(tensors)
        if device.id not in self._compiled:
            self._compiled[device.id] = _browser.call(
                "kernel", self._wgsl, self._entry, device.id
            )
        handles = _browser.numbers([_core._lend(tensor) for tensor in tensors])
        _browser.call("dispatch", self._compiled[device.id], x, y, z, handles)

    @staticmethod
    def _common_device(tensors: Sequence[Tensor]) -> Device:
        if not tensors:
            raise TypeError("a kernel needs at least one tensor")
        devices = [
            _device_of(position, tensor) for position, tensor in enumerate(tensors)
        ]
        if any(device != devices[0] for device in devices):
            names = ", ".join(str(device) for device in devices)
            raise BufferError(
                f"the tensors of one kernel must share a device, not {names}"
            )
        return devices[0]


def _device_of(position: int, tensor: object) -> Device:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"argument {position} is a {type(tensor).__qualname__}; a kernel takes "
            "Tensors, for example dlpack_web.from_dlpack(x, device='webgpu')"
        )
    if tensor.device.type != DLDeviceType.kDLWebGPU:
        raise BufferError(
            f"argument {position} is on {tensor.device}; a kernel takes WebGPU "
            "tensors: use t.to_device('webgpu')"
        )
    return tensor.device
