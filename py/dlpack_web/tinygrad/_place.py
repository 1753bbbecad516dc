"""The Device under tinygrad's: one at a time, for all that this package makes."""

import math
import time
from array import array
from collections.abc import Callable
from typing import Any

from .._backends import backend
from .._kernels.kernel import Kernel
from .._tensor.device import Device
from .._tensor.tensor import from_buffer
from ._setup import LIMITS


class Place:
    """The Device that tinygrad's uses, and what belongs to it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        #: The uniform that each of tinygrad's shaders begins with.
        self.infinity = from_buffer(array("f", [math.inf])).to_device(device)
        self._most = {name: self.limit(name) for name in LIMITS[:2]}

    def limit(self, name: str) -> int:
        return backend().limit(self.device.id, name)

    def check(self, name: str, buffers: int, local_size: Any) -> None:
        """BufferError for a kernel beyond the device's limits."""
        buffers_most, invocations_most = self._most.values()
        invocations = math.prod(local_size or ())
        if buffers <= buffers_most and invocations <= invocations_most:
            return
        what, limit, most = f"{buffers} buffers", LIMITS[0], buffers_most
        if buffers <= buffers_most:
            what, limit, most = (
                f"{invocations} invocations",
                LIMITS[1],
                invocations_most,
            )
        raise BufferError(
            f"tinygrad's kernel {name!r} has {what}, {self.device} allows {most} "
            f"({limit}): call dlpack_web.tinygrad.install() before another device is "
            "requested, which gets the adapter's limits, or "
            f'install(await dlpack_web.webgpu.request_device({limit}=float("inf")))'
        )

    def wait(self) -> None:
        if backend().can_block():
            self.infinity.tobytes()

    def time(self, kernel: Kernel, args: Any, groups: Any) -> float | None:
        """Runs the kernel; returns the seconds that the GPU took. Without timestamps,
        those from here until the GPU finished; None where Python cannot wait."""
        if not backend().can_block():
            kernel(*args, workgroups=groups)
            return None
        if backend().has_feature(self.device.id, "timestamp-query"):
            spent: float = backend().block_on(kernel.time(*args, workgroups=groups))
            return spent / 1e3
        return self.elapsed(lambda: kernel(*args, workgroups=groups))

    def elapsed(self, run: Callable[[], None]) -> float:
        """The seconds until the GPU has finished, where Python can wait."""
        self.wait()
        begin = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - begin


_found: Place | None = None


def place() -> Place:
    assert _found is not None, "use() comes first"
    return _found


def in_use() -> Device:
    """The Device under tinygrad's."""
    return place().device


def move(device: Device) -> bool:
    """Takes another Device from now on; whether it is another one."""
    global _found
    if _found is not None and _found.device == device:
        return False
    _found = Place(device)
    return True
