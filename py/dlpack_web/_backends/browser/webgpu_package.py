"""Support for buffers of PyPI's package webgpu in Pyodide.

The package is not imported here: code that has one of its buffers has imported it.
"""

import sys
from typing import Any


def is_buffer(x: object) -> bool:
    api = sys.modules.get("webgpu.webgpu_api")
    return api is not None and isinstance(x, api.Buffer)


def handle_of(x: object) -> Any:
    """The package's JavaScript object, or a proxy over its link; None for other
    objects."""
    api = sys.modules.get("webgpu.webgpu_api")
    known = api is not None and isinstance(x, api.BaseWebGPUHandle)
    return getattr(x, "handle", None) if known else None


def device_of(buffer: Any) -> Any:
    """The handle of a buffer's device: the package has one device at a time, with a
    generation number. None if the buffer is of another generation, or has no number."""
    utils = sys.modules.get("webgpu.utils")
    current = getattr(utils, "device_generation", None)
    if current is None or getattr(buffer, "_generation", None) != current:
        return None
    return handle_of(getattr(utils, "_device", None))
