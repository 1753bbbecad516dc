"""The browser's backend: JavaScript operates the GPU. The methods of a Backend
(../model/backend.py) are functions here."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import js
from pyodide.ffi import JsException, to_js

from ... import _core
from ..._layout.dtype import DType
from ..._layout.text import type_of
from ..checks import NO_JSPI, Arguments, Counts, Key, ShaderSource, Tensors
from .javascript import (
    Kept,
    calls,
    finish,
    finish_work,
    give_once,
    invoke,
    invoke_with,
    is_js,
    js_list,
    keep_sites,
    options,
    receive,
    site,
    wait_for,
)
from .javascript import block_on as block_on
from .javascript import can_block as can_block
from .javascript import is_loaded as is_loaded

cannot_block = NO_JSPI
reads_in_parts = False


def stats() -> list[dict[str, Any]]:
    """What each registered device holds and has done: webgpu.stats()."""
    rows: list[dict[str, Any]] = invoke(calls().devices.stats).to_py()
    for row in rows:
        row["lost"] = row["lost"] or None  # some Pyodides have their own null
    return rows


def features() -> dict[str, Any]:
    devices, blocking = calls().devices, can_block()
    js_found = block_on(devices.features()) if blocking else devices.featuresAtOnce()
    found: dict[str, Any] = js_found.to_py()
    return {"browser": True, "canBlock": blocking} | found


async def request_device(wanted: dict[str, Any]) -> int:
    return await finish(invoke(calls().devices.request, options(wanted)))


def request_device_blocking(wanted: dict[str, Any]) -> int:
    device_id: int = block_on(invoke(calls().devices.request, options(wanted)))
    return device_id


def use_device(gpu: Any) -> int:
    raw = gpu
    if not is_js(gpu):  # a device of wgpu-py or webgpu over one
        raw = getattr(gpu, "_internal", None) or _handle_of(gpu)
    return invoke(calls().devices.use, raw if is_js(raw) else gpu)


def device(device_id: int) -> Any:
    return invoke(calls().devices.device, device_id)


def device_ids() -> Iterable[int]:
    ids: Iterable[int] = invoke(calls().devices.ids)
    return ids


def limit(device_id: int, name: str) -> int:
    return int(getattr(device(device_id).limits, name))


def has_feature(device_id: int, name: str) -> bool:
    return bool(device(device_id).features.has(name))


def error_count(device_id: int) -> int:
    return int(calls().devices.errorCount(device_id))


def empty(
    shape: tuple[int, ...], dtype: DType, device_id: int, recorded: bool = False
) -> _core.Tensor:
    described = js_list(shape), str(dtype), device_id
    return receive(calls().tensors.empty, *described, recorded)


def upload(tensor: _core.Tensor, device_id: int, dtype: DType) -> _core.Tensor:
    upload = calls().tensors.upload
    return receive(upload, site(), id(tensor), device_id, str(dtype))


def write(target: _core.Tensor, source: _core.Tensor, convert: bool) -> None:
    invoke(calls().tensors.write, site(), id(target), id(source), convert)


async def read(sources: Tensors, targets: Tensors) -> None:
    addresses = map(id, (*sources, *targets))
    await finish_work(lambda work: invoke(calls().tensors.read, work, *addresses))


def read_blocking(sources: Tensors, targets: Tensors) -> None:
    if sources:
        wait_for(calls().tensors.reading, *map(id, (*sources, *targets)))


def from_gpu_buffer(
    buffer: Any,
    shape: tuple[int, ...],
    dtype: DType,
    device_id: int,
    byte_offset: int,
    release: Callable[[], Any] | None,
) -> _core.Tensor:
    adopt = calls().tensors.fromGPUBuffer
    described = js_list(shape), str(dtype), device_id, byte_offset
    given: list[Any] = []
    try:
        give_once(given, release)
        return receive(adopt, buffer, *described, *given)
    except BaseException:
        for each in given:
            each.destroy()
        raise


def gpu_buffer(tensor: Any) -> Any:
    return tensor.js.buffer


def is_pooled(tensor: _core.Tensor) -> bool:
    return invoke(calls().tensors.isPooled, id(tensor))


def from_wgpu(buffer: Any) -> tuple[Any, int]:
    """JavaScript's GPUBuffer and device of a buffer of wgpu-py or of webgpu."""
    if _is_buffer_of_package(buffer):
        return _from_webgpu(buffer)
    raw = getattr(buffer, "_internal", None)
    gpu = getattr(getattr(buffer, "_device", None), "_internal", None)
    if not (is_js(raw) and is_js(gpu)):
        raise TypeError(
            "from_wgpu takes a GPUBuffer of the package wgpu, or a Buffer of webgpu, "
            f"not {buffer!r}; for a JavaScript GPUBuffer use from_gpu_buffer(buffer, "
            "shape, dtype, device=...)"
        )
    return raw, use_device(buffer._device)


def _from_webgpu(buffer: Any) -> tuple[Any, int]:
    raw, gpu = _handle_of(buffer), _device_of(buffer)
    if not is_js(raw):
        raise BufferError(
            "the GPUBuffer of this webgpu.Buffer is in the page that the package's link "
            "leads to, not in this interpreter: webgpu.utils.read_buffer(buffer) copies its "
            "elements here"
        )
    if not is_js(gpu):
        raise BufferError(
            "the package webgpu does not say which GPUDevice this Buffer is of (its own was "
            "lost, or the Buffer was not made by its createBuffer): use "
            "dlw.from_gpu_buffer(buffer.handle, shape, dtype, device=...)"
        )
    return raw, use_device(gpu)


def to_wgpu(tensor: _core.Tensor) -> Any:
    raise BufferError(
        "the package wgpu cannot take over a GPUBuffer in the browser yet "
        "(wgpu-py#753): use t.gpu_buffer, the JavaScript GPUBuffer"
    )


class Kernel:
    """JavaScript's Kernel, and its number, by which C runs it."""

    core_number: int

    def __init__(self, js_kernel: Any) -> None:
        self._js = js_kernel
        self.core_number = invoke(calls().kernels.numberOf, js_kernel)

    def run(self, counts: Counts, args: Arguments, key: Key = ()) -> None:
        if not _core._run(self.core_number, site(2), counts, args, key):
            invoke(calls().kernels.failure)

    async def time(self, counts: Counts, args: Arguments) -> float:
        call, time = (site(), counts, args), calls().kernels.time
        return await finish_work(lambda work: invoke_with(*call, time, work, self._js))

    async def ready(self) -> None:
        await finish(invoke(getattr, self._js, "ready"))


def kernel(source: ShaderSource, device_id: int) -> Kernel:
    *fields, parts, params = source
    shown = [each and options(each._asdict() | {"text": str(each)}) for each in params]
    given = *fields, device_id, js_list(parts), js_list(shown) if params else None
    return Kernel(invoke(calls().kernels.kernel, site(), *given))


class Batch:
    """JavaScript's Batch."""

    def __init__(self, device_id: int) -> None:
        self._kept = Kept(calls().kernels.batch, device_id)
        self._js = self._kept.js
        self._run = self._js.run
        self._sites: list[int] = []

    def add(self, kernel: Kernel, counts: Counts, args: Arguments) -> None:
        number = site(2)
        self._sites.append(number)
        keep_sites([number], True)  # as long as the batch may run
        record = calls().kernels.batchAdd
        invoke_with(number, counts, args, record, self._js, kernel._js)

    def update(
        self, index: int, counts: Counts, places: tuple[int, ...], args: Arguments
    ) -> None:
        change = calls().kernels.batchUpdate
        invoke_with(0, counts, args, change, self._js, index, js_list(places))

    def uses(self, tensor: _core.Tensor, writing: bool) -> bool:
        return invoke(calls().kernels.batchUses, id(tensor), self._js, writing)

    def run(self) -> None:
        invoke(self._run)

    def release(self) -> None:
        self._js.release()
        keep_sites(self._sites, False)

    def __len__(self) -> int:
        length: int = self._js.length
        return length

    def __del__(self) -> None:
        keep_sites(self.__dict__.get("_sites", ()), False)


def batch(device_id: int) -> Batch:
    return Batch(device_id)


async def from_image(
    source: Any, device_id: int, dtype: DType, channels: int
) -> _core.Tensor:
    if not is_js(source):
        raise TypeError(
            f"from_image takes a JavaScript image, not {type_of(source)}: `await "
            "js.createImageBitmap(blob)` makes one of a file"
        )
    wanted = options({"dtype": str(dtype), "channels": channels})
    # Released when this ends, even before the image is there.
    kept = Kept(calls().images.fromImage, site(), source, device_id, wanted)
    try:
        return receive(calls().tensors.fromJs, await finish(kept.js.promise))
    finally:
        kept.js.release()


def frames(source: Any, device_id: int, dtype: DType, channels: int) -> Kept[Any]:
    make = calls().images.frames
    wanted = options({"dtype": str(dtype), "channels": channels})
    if not is_js(source):
        raise TypeError(
            f"frames takes a JavaScript video, canvas or track, not {type_of(source)}"
        )
    return Kept(make, source, device_id, wanted)


def share(tensor: _core.Tensor, device_id: int) -> _core.Tensor:
    raise _core.CopyError(
        f"moving a tensor from cpu to webgpu:{device_id} copies it: in a browser "
        "the GPU has its own memory"
    )


def on_host(tensor: _core.Tensor) -> None:
    pass


async def settle(device_id: int) -> None:
    await finish(invoke(calls().devices.settle, device_id))


# --- the cache between visits ---

_CACHE = "dlpack_web"
# CacheStorage has addresses for names. Nothing is requested from this one.
_ADDRESS = "https://dlpack-web.invalid/"
_MOST = 128  # entries; then the oldest is deleted


async def _open() -> Any:
    """None where nothing can be cached: not in Node, in insecure pages, in some frames."""
    caches = getattr(js, "caches", None)
    return caches and await caches.open(_CACHE)


async def cached(folder: str) -> dict[str, bytes] | None:
    found = {}
    address = f"{_ADDRESS}{folder}/"
    try:
        cache = await _open()
        if cache is None:
            return None
        for request in await cache.keys():
            if request.url.startswith(address):
                buffer = await (await cache.match(request)).arrayBuffer()
                found[request.url.removeprefix(address)] = buffer.to_bytes()
    except (JsException, AttributeError):  # forbidden, or deleted just now
        return None
    return found


async def cache(folder: str, name: str, data: bytes) -> None:
    try:
        cache = await _open()
        if cache is not None:
            response = js.Response.new(to_js(data))
            await cache.put(f"{_ADDRESS}{folder}/{name}", response)
            for request in list(await cache.keys())[:-_MOST]:
                await cache.delete(request)
    except JsException:  # forbidden, or the disk is full: it is only a cache
        pass


# --- buffers of PyPI's package webgpu in Pyodide ---

# It is not imported here: code that has one of its buffers has imported it.


def _is_buffer_of_package(x: object) -> bool:
    api = sys.modules.get("webgpu.webgpu_api")
    return api is not None and isinstance(x, api.Buffer)


def _handle_of(x: object) -> Any:
    """The package's JavaScript object, or a proxy over its link; else None."""
    api = sys.modules.get("webgpu.webgpu_api")
    is_handle = api is not None and isinstance(x, api.BaseWebGPUHandle)
    return getattr(x, "handle", None) if is_handle else None


def _device_of(buffer: Any) -> Any:
    """The handle of a buffer's device: the package has one device at a time, with a
    generation number. None if the buffer is of another generation, or has no number."""
    utils = sys.modules.get("webgpu.utils")
    current = getattr(utils, "device_generation", None)
    if current is None or getattr(buffer, "_generation", None) != current:
        return None
    return _handle_of(getattr(utils, "_device", None))
