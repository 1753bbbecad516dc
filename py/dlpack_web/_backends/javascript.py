"""Python's bridge to JavaScript, an optional capability of the browser's backend: elsewhere
nothing is JavaScript's, and what needs it raises BufferError."""

import sys
from typing import TYPE_CHECKING, Any

__all__ = [
    "IN_BROWSER",
    "Kept",
    "block_on",
    "callback",
    "calls",
    "can_block",
    "finish",
    "has_webgpu",
    "hold_interrupts",
    "invoke",
    "is_js",
    "js_bytes",
    "js_list",
    "memory_size",
    "options",
    "read_file",
    "receive",
    "receive_waiting",
    "site",
    "wait_for",
]

IN_BROWSER: bool = sys.platform == "emscripten"

if TYPE_CHECKING or IN_BROWSER:
    from .browser.bridge import (
        Kept,
        block_on,
        callback,
        calls,
        can_block,
        finish,
        has_webgpu,
        hold_interrupts,
        invoke,
        is_js,
        js_bytes,
        js_list,
        memory_size,
        options,
        read_file,
        receive,
        receive_waiting,
        site,
        wait_for,
    )
else:

    def calls() -> Any:
        raise BufferError(
            "JavaScript is available only in Pyodide, in a browser; this is "
            f"{sys.implementation.name} on {sys.platform}"
        )

    def is_js(x: object) -> bool:
        """Whether `x` is a JavaScript object."""
        return False
