"""OrtDevice, vectors of OrtValues, and small functions of onnxruntime."""

from collections.abc import Sequence
from operator import index
from typing import Any

from ._values import OrtValue

_TYPES = {"cpu": 0, "gpu": 1, "webgpu": 1, "cuda": 1, "dml": 1, "npu": 2, "cann": 2}


class OrtDevice:
    """The place of memory; made by `OrtDevice.make("cpu", 0)`.

    >>> from dlpack_web import onnxruntime as ort
    >>> ort.OrtDevice.make("webgpu", 0).device_type()
    1
    """

    def __init__(self, kind: int, device_id: int, vendor_id: int) -> None:
        self._kind, self._id, self._vendor = kind, device_id, vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """A device by its name: "cpu", "webgpu", "gpu"."""
        if ort_device_name not in _TYPES:
            raise RuntimeError(f"Unsupported device type: {ort_device_name}")
        return OrtDevice(_TYPES[ort_device_name], index(device_id), max(vendor_id, 0))

    def device_type(self) -> int:
        """0 for a CPU, 1 for a GPU."""
        return self._kind

    def device_id(self) -> int:
        """The index of the device among those of its type."""
        return self._id

    def device_vendor_id(self) -> int:
        """0 unless specified."""
        return self._vendor

    def device_mem_type(self) -> int:
        """0, the device's own memory."""
        return 0

    def _get_c_device(self) -> "OrtDevice":
        return self


class OrtValueVector(list[OrtValue]):
    """A list of OrtValues, for `run_with_ortvaluevector`."""

    def push_back(self, value: OrtValue) -> None:
        """Appends a value."""
        self.append(value)

    def reserve(self, count: int) -> None:
        """Nothing: a list grows as it needs."""

    def shrink_to_fit(self) -> None:
        """Nothing."""


def copy_tensors(
    src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None
) -> None:
    """Copies the elements of OrtValues into others, also between CPU and GPU if Python
    can block."""
    if len(src) != len(dst):
        raise RuntimeError("src and dst must have the same size")
    for source, target in zip(src, dst, strict=True):
        if target.device_name() == "cpu" and source.device_name() != "cpu":
            target.update_inplace(source.numpy())
        else:
            target.update_inplace(source)


def set_seed(seed: int) -> None:
    """Nothing: onnxruntime-web chooses seeds itself, and the number is only checked.
    Operators such as RandomNormal have an attribute for it."""
    index(seed)


def disable_telemetry_events() -> None:
    """Nothing: onnxruntime-web has no telemetry."""


enable_telemetry_events = disable_telemetry_events


def set_default_logger_verbosity(verbosity: int) -> None:
    """Nothing: `set_default_logger_severity` sets how much is logged."""
    index(verbosity)


def set_global_thread_pool_sizes(intra_op: int = 0, inter_op: int = 0) -> None:
    """Nothing: `load(threads=)` sets how many threads the WebAssembly has."""


def preload_dlls(*args: Any, **options: Any) -> None:
    """Nothing: a page has no libraries to preload."""


def has_collective_ops() -> bool:
    """False."""
    return False
