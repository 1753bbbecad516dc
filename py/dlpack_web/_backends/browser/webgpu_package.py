"""The package webgpu of PyPI, as far as its buffers are taken in Pyodide.

It is not imported here: who has one of its buffers has imported it.
"""

import sys
from typing import Any


def is_buffer(x: object) -> bool:
    api = sys.modules.get("webgpu.webgpu_api")
    return api is not None and isinstance(x, api.Buffer)


def handle_of(x: object) -> Any:
    """JavaScript's own object, or the proxy of a link; None for what is not the package's."""
    api = sys.modules.get("webgpu.webgpu_api")
    known = api is not None and isinstance(x, api.BaseWebGPUHandle)
    return getattr(x, "handle", None) if known else None


def device_of(buffer: Any) -> Any:
    """The handle of the device that a buffer is of: the package has one at a time, and counts
    those that were lost. None where that does not tell."""
    utils = sys.modules.get("webgpu.utils")
    current = getattr(utils, "device_generation", None)
    if current is None or getattr(buffer, "_generation", None) != current:
        return None
    return handle_of(getattr(utils, "_device", None))
