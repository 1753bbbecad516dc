"""What `install` does before it imports tinygrad: the version, and the device."""

from importlib import metadata
from importlib.util import find_spec

from .._backends import backend
from .._tensor.device import CPU, Device, first_device, parse_device, webgpu_device

# The versions that are tested.
_OLDEST, _BEFORE = (0, 14), (0, 15)
_RANGE = "tinygrad>=0.14,<0.15"

#: WebGPU's limits that shaders of tinygrad meet. A new device gets the adapter's.
LIMITS = (
    "maxStorageBuffersPerShaderStage",
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
    "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ",
    "maxComputeWorkgroupStorageSize",
)


def check_version() -> None:
    """ImportError unless a supported tinygrad is installed."""
    if find_spec("tinygrad") is None:
        raise ImportError(
            f"dlpack_web.tinygrad needs tinygrad: pip install '{_RANGE}' (in Pyodide: "
            f"await micropip.install('{_RANGE}'))"
        )
    try:
        version = metadata.version("tinygrad")
    except metadata.PackageNotFoundError:
        return  # unpacked by hand
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if not _OLDEST <= numbers < _BEFORE:
        raise ImportError(
            f"tinygrad {version} is installed; supported is {_RANGE}: pip install "
            f"'{_RANGE}'"
        )


def choose_device(device: str | tuple[int, int]) -> Device:
    """The Device for `install`; one with the adapter's LIMITS if there is none."""
    target = parse_device(device)
    if target is CPU:
        raise BufferError("tinygrad's own CPU device needs no install(): use 'webgpu'")
    target = target or first_device()
    if target is not None:
        return target
    if not backend().can_block():
        raise BufferError(
            "no WebGPU device is registered, and Python cannot wait for one here: call "
            "`await dlpack_web.webgpu.request_device()` first"
        )
    most = dict.fromkeys(LIMITS, float("inf"))
    return webgpu_device(backend().request_device_blocking(most))
