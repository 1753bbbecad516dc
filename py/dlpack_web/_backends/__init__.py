"""Access to the GPU: one interface with three backends.

The browser's (browser/) does everything through JavaScript; the desktop's (desktop/)
does the same over wgpu-py. One of these is loaded at the first call that needs it. The
third (../_page) is the GPU of a page that shows a widget of this kernel: one for each
page, and each has a device of its own. The last two are drivers of model/. Backends share
no devices or tensors. Features of pages alone (canvases, JavaScript's tensors and
libraries) are not part of the interface.

Tensors are always dlpack_web.Tensor; the caller owns those that are returned.
"""

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .._core import Tensor
from .._layout.dtype import DType
from .checks import Arguments

if TYPE_CHECKING or sys.platform == "emscripten":
    from .browser import javascript as javascript
else:
    from . import no_javascript as javascript  # noqa: F401


class BackendKernel(Protocol):
    """A shader on one device. `args` are Tensors on it, and floats; counts of
    workgroups: 0 for the default."""

    #: With which `_core._again` may run a call again; 0: it cannot.
    core_number: int

    def run(self, counts: tuple[int, ...], args: Arguments, /) -> None: ...
    def time(self, counts: tuple[int, ...], args: Arguments, /) -> Awaitable[float]: ...
    def ready(self) -> Awaitable[None]: ...


class BackendBatch(Protocol):
    """Recorded calls of kernels of one device, with holds on their tensors. `args` as
    for BackendKernel; `places` are their positions in the call."""

    def add(self, kernel: Any, counts: tuple[int, ...], args: Arguments, /) -> None: ...
    def update(
        self,
        index: int,
        counts: tuple[int, ...],
        places: tuple[int, ...],
        args: Arguments,
        /,
    ) -> None: ...
    def uses(self, tensor: Tensor, writing: bool, /) -> bool: ...
    def run(self) -> None: ...
    def release(self) -> None: ...
    def __len__(self) -> int: ...


class Backend(Protocol):
    """What dlpack_web needs of its environment. Devices are identified by their ids."""

    # --- facts ---
    def features(self) -> dict[str, Any]: ...
    def is_loaded(self) -> bool: ...
    def can_block(self) -> bool: ...

    cannot_block: str  # follows "the tensor is on webgpu:0"

    def stats(self) -> list[dict[str, Any]]: ...

    # Waits for a coroutine of this backend, where it `can_block()`.
    def block_on(self, awaitable: Coroutine[Any, Any, Any], /) -> Any: ...

    # --- devices ---
    def request_device(self, options: dict[str, Any], /) -> Awaitable[int]: ...
    def request_device_blocking(self, options: dict[str, Any], /) -> int: ...
    def use_device(self, gpu: Any, /) -> int: ...
    def device(self, device_id: int, /) -> Any: ...
    def device_ids(self) -> Iterable[int]: ...
    def limit(self, device_id: int, name: str, /) -> int: ...
    def has_feature(self, device_id: int, name: str, /) -> bool: ...

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

    # For memory that CPU and GPU share; else CopyError or None. `on_host` waits for the
    # GPU.
    def share(self, tensor: Tensor, device_id: int, /) -> Tensor: ...
    def on_host(self, tensor: Tensor, /) -> Tensor | None: ...

    # Waits until all writes to a device have arrived.
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

    # parts: lines of the source where errors are shown as of the part (its name, first
    # line and number of lines).
    def kernel(
        self,
        wgsl: str,
        entry: str,
        label: str,
        check: bool,
        device_id: int,
        parts: Sequence[tuple[str, int, int]],
        /,
    ) -> BackendKernel: ...
    def batch(self, device_id: int, /) -> BackendBatch: ...
    def from_image(
        self, source: Any, device_id: int, dtype: DType, channels: int, /
    ) -> Awaitable[Tensor]: ...
    def frames(
        self, source: Any, device_id: int, dtype: DType, channels: int, /
    ) -> Any: ...

    # --- what is kept between visits ---

    # All of a folder, by name; None: nothing can be kept here.
    def kept(self, folder: str, /) -> Coroutine[Any, Any, dict[str, bytes] | None]: ...
    def keep(
        self, folder: str, name: str, data: bytes, /
    ) -> Coroutine[Any, Any, None]: ...


IN_BROWSER = bool(sys.platform == "emscripten")
_default: Backend | None = None
#: Backends by the ids of their devices, but for those that JavaScript numbers.
owners: dict[int, Backend] = {}


def default() -> Backend:
    """For code without a device or a tensor."""
    global _default
    if _default is None:
        _default = _load()
    return _default


def owner(device_id: int) -> Backend:
    """The backend of a device."""
    return owners.get(device_id) or default()


def owner_of(tensor: Tensor) -> Backend:
    """The backend of a WebGPU tensor's device."""
    return owner(tensor.__dlpack_device__()[1])


def _loaded() -> list[Backend]:
    """Those that have anything to report; loads none."""
    first = [default()] if _default is not None or IN_BROWSER else []
    found = dict.fromkeys([*first, *owners.values()])
    return [each for each in found if each.is_loaded()]


def is_loaded() -> bool:
    """Whether a backend has anything to report; loads none."""
    return bool(_loaded())


def stats() -> list[dict[str, Any]]:
    """The rows of all backends."""
    return [row for each in _loaded() or [default()] for row in each.stats()]


def _load() -> Backend:
    if IN_BROWSER:
        from . import browser

        return browser
    from . import desktop

    return desktop.backend


def features() -> dict[str, Any]:
    """The features of this host.

    browser: whether there is one. In a browser the others are those of JavaScript's
    features(): webgpu (available; reason, or adapter and maxBufferSize in bytes),
    shaderF16, timestampQuery, jspi, float16Array, using, unsafeEval, isolated, worker.
    Where Python cannot block (no JSPI), no adapter is requested:
    `webgpu.request_device()` then shows whether there is one. canBlock: whether Python
    can block here and now. On the desktop: webgpu and, if it is available, shaderF16,
    timestampQuery, canBlock.

    >>> dlw.features()["webgpu"]["available"]
    True
    """
    return default().features()
