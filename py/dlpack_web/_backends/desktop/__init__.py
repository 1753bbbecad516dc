"""The desktop's backend (Backend of ../__init__.py): WebGPU in ordinary CPython, over
wgpu-py.

Faults, checks and copies are the same as in the browser. The files correspond to those
in js/src/webgpu: state, faults and work, buffers, transfer, kernel, images. They are
loaded when WebGPU is first used, and wgpu itself (wgpu.py) when it is first needed.
"""

import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from ... import _core
from ..._layout import DEFAULT_FEATURES, DEFAULT_LIMITS
from ..._layout.dtype import DType
from ..model import messages
from . import wgpu
from .batch import Batch
from .buffers import (
    View,
    adopt,
    allocate,
    check_row_major,
    round_up,
    step_of,
    tensor_over,
)
from .host import on_host as on_host
from .host import share as share
from .images import from_image as from_pixels
from .kernel import Kernel
from .state import Record, record_with, records, register, requested, slot_of, taken
from .state import stats as stats
from .transfer import read as read
from .transfer import read_blocking as read_blocking
from .transfer import settle as settle
from .transfer import upload as upload
from .transfer import write as write

# --- facts --------------------------------------------------------------------------------


def features() -> dict[str, Any]:
    found: dict[str, Any] = {"browser": False}
    where = f"this is {sys.implementation.name} on {sys.platform}, not a browser"
    try:
        package = wgpu.wgpu()
    except BufferError as error:
        return found | {"webgpu": {"available": False, "reason": f"{where}: {error}"}}
    try:
        adapter = package.gpu.request_adapter_sync()
    except wgpu.failures() as error:
        reason = f"{where}, and wgpu found no adapter: {error}"
        return found | {"webgpu": {"available": False, "reason": reason}}
    return found | {
        "webgpu": {
            "available": True,
            "adapter": adapter.summary,
            "maxBufferSize": wgpu.limits(adapter)["max-buffer-size"],
        },
        "shaderF16": wgpu.has_feature(adapter, "shader-f16"),
        "timestampQuery": wgpu.has_feature(adapter, "timestamp-query"),
        "canBlock": True,
    }


def is_loaded() -> bool:
    return bool(records)


def can_block() -> bool:
    return True


def block_on(awaitable: Coroutine[Any, Any, Any]) -> Any:
    """Within an event loop, which wgpu would wait for, in another thread."""
    if sys.get_asyncgen_hooks()[0] is None:
        return _result(awaitable)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_result, awaitable).result()


def _result(awaitable: Coroutine[Any, Any, Any]) -> Any:
    try:
        awaitable.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a blocking call awaited something")


# --- devices ------------------------------------------------------------------------------

# Of Dawn: memory of this process as a buffer.
_DEFAULT_FEATURES = (*DEFAULT_FEATURES, "host-mapped-pointer")


async def request_device(options: dict[str, Any]) -> int:
    return (await _request(options, blocking=False)).id


def request_device_blocking(options: dict[str, Any]) -> int:
    record: Record = _result(_request(options, blocking=True))
    return record.id


async def _request(options: dict[str, Any], *, blocking: bool) -> Record:
    given = options.get("features")
    if isinstance(given, Iterable) and not isinstance(given, str):
        options = options | {"features": list(given)}
    limits = dict(options)
    features, preference, label = (
        limits.pop(name, None) for name in ("features", "powerPreference", "label")
    )
    _check_request(features, preference, label)
    found = requested(options)
    if found is not None:
        return found
    adapter = await wgpu.adapter_of(preference, blocking=blocking)
    allowed = wgpu.limits(adapter)
    required = {}
    for name, asked in (dict.fromkeys(DEFAULT_LIMITS, float("inf")) | limits).items():
        limit = allowed.get(wgpu.limit_name(name))
        is_number = isinstance(asked, int | float) and not isinstance(asked, bool)
        if limit is None or not is_number:
            raise TypeError(messages.no_limit(name, asked))
        if not asked >= 0:
            raise TypeError(messages.negative_limit(name, asked))
        wanted = limit if asked == float("inf") else int(asked)
        if wanted > limit and not name.startswith("min"):
            raise BufferError(messages.above_adapter(name, asked, limit))
        required[wgpu.limit_name(name)] = wanted
    if features is None:
        features = [n for n in _DEFAULT_FEATURES if wgpu.has_feature(adapter, n)]
    gpu = await wgpu.device_from(
        adapter, label or "", features, required, blocking=blocking
    )
    record = register(gpu, allowed, options)
    if record.gpu is not gpu:  # another request was faster
        gpu.destroy()
    return record


_PREFERENCES = ("low-power", "high-performance")


def _check_request(features: Any, preference: Any, label: Any) -> None:
    """TypeError for options that are none; limits are checked against the adapter's."""

    def refuse(name: str, needed: str, given: object) -> NoReturn:
        raise TypeError(f"{name} must be {needed}, not {given!r}")

    is_list = isinstance(features, list) and all(
        isinstance(name, str) for name in features
    )
    if features is not None and not is_list:
        refuse("features", 'a list of names: ["shader-f16"]', features)
    if preference is not None and preference not in _PREFERENCES:
        refuse("powerPreference", " or ".join(_PREFERENCES), preference)
    if label is not None and not isinstance(label, str):
        refuse("label", "a string", label)


def use_device(gpu: Any) -> int:
    if not wgpu.is_device(gpu):
        raise TypeError(f"a wgpu.GPUDevice is needed, not {gpu!r}")
    return register(gpu).id


def device(device_id: int) -> Any:
    return record_with(device_id).gpu


def device_ids() -> Iterable[int]:
    wgpu.wgpu()
    return [record.id for record in records if not record.is_lost()]


def limit(device_id: int, name: str) -> int:
    return int(wgpu.limits(record_with(device_id).gpu)[wgpu.limit_name(name)])


def has_feature(device_id: int, name: str) -> bool:
    return wgpu.has_feature(record_with(device_id).gpu, name)


# --- tensors ------------------------------------------------------------------------------


def empty(shape: tuple[int, ...], dtype: DType, device_id: int) -> _core.Tensor:
    record = record_with(device_id)
    size = 1
    for extent in shape:
        size *= extent
    used = size * step_of(dtype, False)
    slot = allocate(record, round_up(used, 1), used=used, zeros=True)
    return tensor_over(slot, shape, dtype)


def from_gpu_buffer(
    buffer: Any,
    shape: tuple[int, ...],
    dtype: DType,
    device_id: int,
    byte_offset: int,
    release: Callable[[], Any] | None,
) -> _core.Tensor:
    record = record_with(device_id)
    return adopt(record, buffer, shape, dtype, byte_offset, release)


def gpu_buffer(tensor: _core.Tensor) -> Any:
    return taken(slot_of(tensor))


def is_pooled(tensor: _core.Tensor) -> bool:
    return slot_of(tensor).own


def from_wgpu(buffer: Any) -> tuple[Any, int]:
    if not wgpu.is_buffer(buffer):
        raise TypeError(f"from_wgpu takes a wgpu.GPUBuffer, not {buffer!r}")
    return buffer, register(wgpu.device_of(buffer)).id


def to_wgpu(tensor: _core.Tensor) -> Any:
    view = View(tensor)
    check_row_major(view)
    return taken(view.slot)


# --- work ---------------------------------------------------------------------------------


def kernel(
    wgsl: str,
    entry: str,
    label: str,
    check: bool,
    device_id: int,
    parts: Sequence[tuple[str, int, int]],
) -> Kernel:
    return Kernel(record_with(device_id), wgsl, entry, label, check, parts)


def batch(device_id: int) -> Batch:
    return Batch(record_with(device_id))


async def from_image(
    source: Any, device_id: int, dtype: DType, channels: int
) -> _core.Tensor:
    return from_pixels(record_with(device_id), source, dtype, channels)


# --- what is kept between visits -----------------------------------------------------------


async def kept(folder: str) -> dict[str, bytes] | None:
    return None


async def keep(folder: str, name: str, data: bytes) -> None:
    raise BufferError("only browsers keep data between visits")
