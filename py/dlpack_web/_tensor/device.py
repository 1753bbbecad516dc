"""Devices with DLPack's names."""

from typing import Any, NamedTuple

from .._backends import default, owner
from .._layout import HOST_DEVICES, DLDeviceType
from .._layout.text import is_awaitable, type_of


class Device(NamedTuple):
    """The device of a tensor. It equals the (type, id) pair of `__dlpack_device__`, and
    its name.

    `type` is a `DLDeviceType`; `id` is the index of a registered GPUDevice for WebGPU,
    and 0 for the CPU (unless a producer counts several). str() gives "cpu" or
    "webgpu:0". A name without an index equals each device of that type. As a key of a
    dict or set a Device is its (type, id) pair, never a name: use str(device) there.

    >>> device = dlw.empty(3).device
    >>> str(device), device == (1, 0), device == "cpu", device == "webgpu"
    ('cpu', True, True, False)
    """

    type: int
    id: int

    def __str__(self) -> str:
        if self.type == DLDeviceType.kDLCPU and self.id == 0:
            return "cpu"
        return f"{self._type_name()}:{self.id}"

    def __repr__(self) -> str:
        return f"<Device {self}>"

    def _type_name(self) -> str:
        try:
            return DLDeviceType(self.type).name.removeprefix("kDL").lower()
        except ValueError:  # newer than this library
            return f"type {self.type}"

    # A name and a pair cannot have the same hash. NumPy's dtypes equal their names, too.
    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other in (str(self), self._type_name())
        return tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    @property
    def is_host(self) -> bool:
        """Whether the CPU can read its memory.

        >>> dlw.Device(1, 0).is_host, dlw.Device(15, 0).is_host
        (True, False)
        """
        return self.type in HOST_DEVICES

    @property
    def gpu(self) -> Any:
        """The GPUDevice of a WebGPU device: a JsProxy in the browser, wgpu-py's own on
        the desktop. BufferError for others.

        >>> dlw.empty(3).device.gpu
        Traceback (most recent call last):
        ...
        BufferError: cpu is not a WebGPU device
        """
        if self.type != DLDeviceType.kDLWebGPU:
            raise BufferError(f"{self} is not a WebGPU device")
        return owner(self.id).device(self.id)


CPU = Device(DLDeviceType.kDLCPU, 0)


def webgpu_device(device_id: int) -> Device:
    return Device(DLDeviceType.kDLWebGPU, device_id)


def parse_device(device: str | tuple[int, int]) -> Device | None:
    """The Device for `device`; None for "webgpu" without an index.

    Raises TypeError for other objects, ValueError for an unknown name, BufferError
    for one of DLPack's devices that this library does not support.
    """
    if isinstance(device, str):
        if device == "cpu":
            return CPU
        if device == "webgpu":
            return None
        kind, _, index = device.partition(":")
        if kind == "webgpu" and index.isdecimal():
            return webgpu_device(int(index))
    elif isinstance(found := getattr(device, "_page_device", None), Device):
        return found
    elif isinstance(device, tuple) and len(device) == 2:
        kind_of, index_of = device
        if kind_of == DLDeviceType.kDLCPU and index_of == 0:
            return CPU
        if kind_of == DLDeviceType.kDLWebGPU and index_of >= 0:
            return webgpu_device(index_of)
        if isinstance(device, Device) and device.is_host:
            return CPU
    else:
        given = type_of(device) if is_awaitable(device) else repr(device)
        if hasattr(device, "createBuffer") or hasattr(device, "create_buffer"):
            way = "use the Device that dlw.webgpu.use_device(gpu) returns"
            given = f"a GPUDevice: {way}"
        raise TypeError(f"device must be a str or a Device, not {given}")
    kind_of_error = ValueError if isinstance(device, str) else BufferError
    raise kind_of_error(
        f"unknown device {device!r}: 'cpu', 'webgpu' and 'webgpu:<index>' are supported"
    )


def first_device() -> Device | None:
    """The first registered WebGPU device that is not lost."""
    for device_id in default().device_ids():
        return webgpu_device(device_id)
    return None


def default_device(options: dict[str, Any] | None = None) -> Device:
    """The first device; requests one if there is none and Python can block."""
    device = first_device()
    if device is None and not default().can_block():
        raise BufferError(
            "no WebGPU device is registered, and Python cannot wait for one here: call "
            "`await dlpack_web.webgpu.request_device()` first"
        )
    return device or webgpu_device(default().request_device_blocking(options or {}))


async def await_default_device() -> Device:
    """The first device; awaits a new one if there is none."""
    return first_device() or webgpu_device(await default().request_device({}))
