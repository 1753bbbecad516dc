"""Where the GPU is: one interface, and two backends that have it.

The browser's (browser/) calls JavaScript for all of it; the desktop's (desktop/) does the
same over wgpu-py. Neither is loaded before something here is called, and the devices and
tensors of one are not those of the other. What only a page has (canvases, JavaScript's
tensors and libraries) is not part of the interface.

Tensors are dlpack_web.Tensor in all of it; those that are returned are the caller's.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from .._core import Tensor
from .._layout.dtype import DType


class BackendKernel(Protocol):
    """A shader on one device. `args` are Tensors on it, and numbers, that were checked
    by `_core._arguments`, which `given` is of; counts of workgroups: 0 for the usual."""

    def run(
        self, counts: tuple[int, ...], args: tuple[Any, ...], given: tuple[Any, ...], /
    ) -> None: ...
    def time(
        self, counts: tuple[int, ...], args: tuple[Any, ...], given: tuple[Any, ...], /
    ) -> Awaitable[float]: ...
    def ready(self) -> Awaitable[None]: ...


class Backend(Protocol):
    """What dlpack_web asks of where it runs. Devices are known by their ids."""

    # --- facts ---
    def features(self) -> dict[str, Any]: ...
    def is_loaded(self) -> bool: ...
    def can_block(self) -> bool: ...
    def stats(self) -> list[dict[str, Any]]: ...

    # --- devices ---
    def request_device(self, options: dict[str, Any], /) -> Awaitable[int]: ...
    def request_device_blocking(self, options: dict[str, Any], /) -> int: ...
    def use_device(self, gpu: Any, /) -> int: ...
    def device(self, device_id: int, /) -> Any: ...
    def device_ids(self) -> Iterable[int]: ...

    # --- tensors ---
    def empty(
        self, shape: tuple[int, ...], dtype: DType, device_id: int, /
    ) -> Tensor: ...
    def upload(self, tensor: Tensor, device_id: int, dtype: DType, /) -> Tensor: ...
    def write(self, target: Tensor, source: Tensor, convert: bool, /) -> None: ...
    def read(
        self, sources: Sequence[Tensor], targets: Sequence[Tensor], /
    ) -> Awaitable[None]: ...
    def read_blocking(
        self, sources: Sequence[Tensor], targets: Sequence[Tensor], /
    ) -> None: ...

    # On memory that CPU and GPU share; CopyError where there is none. `on_host` waits for
    # the GPU.
    def share(self, tensor: Tensor, device_id: int, /) -> Tensor: ...
    def on_host(self, tensor: Tensor, /) -> Tensor: ...

    # Waits until what was written to a device has arrived.
    def settle(self, device_id: int, /) -> Awaitable[None]: ...

    # --- GPUBuffers ---
    def from_gpu_buffer(
        self,
        buffer: Any,
        shape: tuple[int, ...],
        dtype: DType,
        device_id: int,
        byte_offset: int,
        release: Callable[[], Any] | None,
        /,
    ) -> Tensor: ...
    def gpu_buffer(self, tensor: Tensor, /) -> Any: ...
    def is_pooled(self, tensor: Tensor, /) -> bool: ...
    def from_wgpu(self, buffer: Any, /) -> tuple[Any, int]: ...
    def to_wgpu(self, tensor: Tensor, /) -> Any: ...

    # --- work ---
    def kernel(
        self, wgsl: str, entry: str, label: str, check: bool, device_id: int, /
    ) -> BackendKernel: ...
    def from_image(
        self, source: Any, device_id: int, dtype: DType, channels: int, /
    ) -> Awaitable[Tensor]: ...


_IN_BROWSER = bool(sys.platform == "emscripten")
_found: Backend | None = None


def backend() -> Backend:
    """The backend of this Python."""
    global _found
    if _found is None:
        _found = _load()
    return _found


def is_loaded() -> bool:
    """Whether a backend has anything to report; none is loaded to be asked."""
    return (_IN_BROWSER or _found is not None) and backend().is_loaded()


def _load() -> Backend:
    if _IN_BROWSER:
        from . import browser

        return browser
    from . import desktop

    return desktop


def features() -> dict[str, Any]:
    """What this host can do, and what it lacks.

    browser: whether there is one. In it the others are those of JavaScript's features():
    webgpu (available; reason, or adapter and maxBufferSize in bytes), shaderF16,
    timestampQuery, jspi, float16Array, using, unsafeEval, isolated, worker. Where Python
    cannot wait (no JSPI), no adapter is asked for: then `webgpu.request_device()` tells.
    canBlock: whether it can wait here and now. On the desktop: webgpu, and where that is
    available shaderF16, timestampQuery, canBlock.

    >>> dlw.features()["webgpu"]["available"]
    True
    """
    return backend().features()
