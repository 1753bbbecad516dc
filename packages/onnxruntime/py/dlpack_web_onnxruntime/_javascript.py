"""JavaScript: what this package needs besides dlpack_web.internal."""

from typing import Any

import js
import pyodide_js
from pyodide.ffi import JsProxy, can_run_sync, to_js


def options(values: dict[str, Any]) -> Any:
    """A plain JavaScript object."""
    return to_js(values, dict_converter=js.Object.fromEntries)


def js_bytes(data: bytes) -> Any:
    """A JavaScript Uint8Array with a copy of bytes."""
    return to_js(data)


def has_webgpu() -> bool:
    """Whether the browser has WebGPU; requests no adapter."""
    return bool(getattr(getattr(js, "navigator", None), "gpu", None))


def memory_size() -> int:
    """Bytes of Python's memory: all its addresses are lower."""
    return int(pyodide_js._module.HEAPU8.length)


def read_file(path: str) -> Any:
    """The contents of a file, as a Uint8Array, so Python's own memory does not grow."""
    return pyodide_js.FS.readFile(path)


def is_js(x: object) -> bool:
    """Whether `x` is a JavaScript object."""
    return isinstance(x, JsProxy)


def can_block() -> bool:
    """Whether Python may wait for a promise here (JavaScript Promise Integration)."""
    return bool(can_run_sync())
