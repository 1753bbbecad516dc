"""Devices as DLPack names them."""

# ruff: noqa: N815 - the members keep DLPack's spelling

from enum import IntEnum
from typing import NamedTuple


class DLDeviceType(IntEnum):
    """Kinds of device, with the names and values of DLPack 1.3."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


class Device(NamedTuple):
    """Where a tensor lives. Equal to the (type, id) pair of `__dlpack_device__`.

    `type` is a `DLDeviceType`; `id` is 0 for the CPU and the index of a registered
    GPUDevice for WebGPU. str() gives "cpu" or "webgpu:0".
    """

    type: int
    id: int

    def __str__(self) -> str:
        if self.type == DLDeviceType.kDLCPU:
            return "cpu"
        name = DLDeviceType(self.type).name.removeprefix("kDL").lower()
        return f"{name}:{self.id}"


CPU = Device(DLDeviceType.kDLCPU, 0)


def parse_device(device: str | tuple[int, int]) -> Device | None:
    """The device that is meant; None for "webgpu" without an index.

    Raises TypeError for what is no device at all, BufferError for one that this library
    does not know.
    """
    if isinstance(device, str):
        if device == "cpu":
            return CPU
        if device == "webgpu":
            return None
        kind, _, index = device.partition(":")
        if kind == "webgpu" and index.isdecimal():
            return Device(DLDeviceType.kDLWebGPU, int(index))
    elif isinstance(device, tuple) and len(device) == 2:
        kind_of, index_of = device
        if (kind_of, index_of) == CPU:
            return CPU
        if kind_of == DLDeviceType.kDLWebGPU and index_of >= 0:
            return Device(DLDeviceType.kDLWebGPU, index_of)
    else:
        raise TypeError(f"device must be a str or a Device, not {device!r}")
    raise BufferError(
        f"unknown device {device!r}: 'cpu', 'webgpu' and 'webgpu:<index>' are supported"
    )
