"""The device of a page and its buffers, as the model sees them."""

from types import SimpleNamespace
from typing import Any

from dlpack_web import DeviceLostError
from dlpack_web.backends import Device

from .._wire.frame import malformed

_DIVISORS = "minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment"
# Limits that are looked up here. A page reports all that it has.
_NEEDED = (
    "maxBufferSize",
    "maxComputeWorkgroupsPerDimension",
    "maxStorageBufferBindingSize",
    "maxUniformBufferBindingSize",
    *_DIVISORS,
)

# Names of features or limits that are kept.
_MOST_NAMES = 1000


class PageGPU:
    """What is known here of the GPUDevice of a page: `Device.gpu`. It has the members
    of a GPUDevice that are values; its methods are only in the page."""

    def __init__(self, properties: Any) -> None:
        """properties: the page's. BufferError: one is missing, or of another type."""
        features = _part(properties, "features", list)
        limits = _part(properties, "limits", dict)
        if max(len(features), len(limits)) > _MOST_NAMES:
            raise BufferError(
                f"the page has more than {_MOST_NAMES} features or limits"
            )
        if not all(isinstance(name, str) and len(name) < 200 for name in features):
            raise BufferError("the page's features are not names")
        for name in {*(str(each)[:200] for each in limits), *_NEEDED}:
            limit = limits.get(name)
            if type(limit) is not int or not 0 <= limit < 2**53:
                raise BufferError(f"the page's limit {name!r:.50} is {limit!r:.50}")
            if limit == 0 and name in _DIVISORS:
                raise BufferError(f"the page's limit {name!r} is 0")
        self.features = frozenset(features)
        self.limits = SimpleNamespace(**limits)
        self.label = ""
        self.adapter = str(properties.get("adapter", ""))[:1000]

    def __repr__(self) -> str:
        return f"<PageGPU {self.adapter or 'of a page'}>"


def _part(properties: Any, name: str, kind: type) -> Any:
    found = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(found, kind):
        malformed("the page's message", f"its {name} are {found!r:.50}")
    return found


def refused(what: str) -> BufferError:
    return BufferError(f"the GPU is in the page, which does not support {what}")


class PageDevice(Device):
    @staticmethod
    def way_to_larger(size: int) -> str:
        return "use several tensors"

    def __init__(self, gpu: PageGPU, link: Any) -> None:
        super().__init__(gpu, vars(gpu.limits), gpu.features)
        self.link = link

    def check_buffer(self, buffer: Any) -> None:
        raise refused("wrapping GPUBuffers")

    def lost_error(self) -> DeviceLostError:
        return DeviceLostError(
            f"webgpu:{self.id} is lost ({self.lost}), with its tensors: "
            "`await page.ready()`, and upload again"
        )


class Buffer:
    """A GPUBuffer of a page, by the number that both sides know it by."""

    usage = Device.usage

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
