"""Bytes that the browser keeps between visits."""

from typing import Any

import js
from pyodide.ffi import JsException

from .bridge import js_bytes

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
