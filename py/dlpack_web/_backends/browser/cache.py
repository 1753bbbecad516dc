"""Files that JavaScript opens, reads and writes, and bytes that the browser keeps between visits."""

from collections.abc import Callable, Sequence
from typing import Any

from ... import _core
from .bridge import (
    IN_BROWSER,
    Kept,
    call,
    finish,
    js_bytes,
    js_list,
    method,
    options,
    receive,
)

if IN_BROWSER:
    from pyodide.ffi import create_proxy


class OpenFile:
    """JavaScript's TensorFile; closed when this is collected."""

    def __init__(self, kept: Kept, file: Any) -> None:
        self._kept, self.js = kept, file
        facts = call("factsOf", file)
        self.name = facts.name
        self.metadata: dict[str, str] = dict(facts.metadata.to_py())
        self.infos: list[tuple[str, str, Sequence[int], int, str]] = facts.infos.to_py()

    def close(self) -> None:
        self.js.close()


class Opening:
    """One load by JavaScript, which reports its progress to a Python function.
    Cancelling the wait aborts it."""

    def __init__(self, progress: Callable[[int, int | None], object] | None) -> None:
        self._progress = progress
        self._raised: BaseException | None = None

    def _told(self, loaded: int, total: int | None) -> None:
        assert self._progress is not None
        try:
            self._progress(loaded, total)
        except BaseException as error:
            self._raised = error
            raise

    async def _finish(self, function: Any, *args: Any) -> tuple[Kept, Any]:
        told = None if self._progress is None else create_proxy(self._told)
        try:
            kept = Kept(function, *args, told)
            try:
                return kept, await finish(kept.js.promise)
            except BaseException:
                kept.js.release()  # aborts the load of a cancelled task
                if self._raised is not None:
                    raise self._raised from None
                raise
        finally:
            if told is not None:
                told.destroy()

    async def open(
        self,
        source: Any,
        format: str | None,
        shape: Sequence[int] | None,
        device_id: int,
        dtype: str | None,
    ) -> "_core.Tensor | OpenFile":
        wanted = options({"format": format, "dtype": dtype, "shape": shape})
        args = source, device_id, wanted
        kept, found = await self._finish(method("open"), *args)
        if hasattr(found, "names"):
            return OpenFile(kept, found)
        return receive(method("fromJs"), found)

    async def load(
        self, file: OpenFile, name: str, device_id: int, dtype: str | None
    ) -> _core.Tensor:
        args = file.js, name, device_id, options({"dtype": dtype})
        _, found = await self._finish(method("load"), *args)
        return receive(method("fromJs"), found)


async def save(
    target: Any, tensors: Any, format: str, metadata: dict[str, str]
) -> None:
    """Lets JavaScript write tensors to one of its streams or files."""
    wanted = options({"format": format, "metadata": metadata})
    names = js_list(tensors)
    kept = Kept(method("save"), target, names, wanted, *map(id, tensors.values()))
    try:
        await finish(kept.js.promise)
    finally:
        kept.js.release()


if IN_BROWSER:
    import js
    from pyodide.ffi import JsException

_CACHE = "dlpack_web"
# CacheStorage has addresses for names. Nothing is requested from this one.
_ADDRESS = "https://dlpack-web.invalid/"
_MOST = 128  # entries; then the oldest is deleted


async def _open() -> Any:
    """None where nothing can be kept: not in Node, in insecure pages, in some frames."""
    caches = getattr(js, "caches", None)
    return caches and await caches.open(_CACHE)


async def kept(folder: str) -> dict[str, bytes] | None:
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


async def keep(folder: str, name: str, data: bytes) -> None:
    try:
        cache = await _open()
        if cache is not None:
            response = js.Response.new(js_bytes(data))
            await cache.put(f"{_ADDRESS}{folder}/{name}", response)
            for request in list(await cache.keys())[:-_MOST]:
                await cache.delete(request)
    except JsException:  # forbidden, or the disk is full: it is only a cache
        pass
