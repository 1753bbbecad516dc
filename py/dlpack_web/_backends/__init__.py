"""Access to the GPU: one interface (Backend of model/backend.py) with two backends.

The browser's (browser/) does everything through JavaScript; the desktop's (desktop/)
does the same over wgpu-py, as a driver of model/. One of these is loaded at the first call
that needs it. Packages add others (../backends.py). Backends share no devices or tensors.
Features of pages alone (canvases, JavaScript's tensors and libraries) are not part of the
interface.

Tensors are always dlpack_web.Tensor; the caller owns those that are returned.
"""

import sys
from typing import TYPE_CHECKING, Any

from .._core import Tensor

if TYPE_CHECKING:
    from .model.backend import Backend
if TYPE_CHECKING or sys.platform == "emscripten":
    from .browser import javascript as javascript
else:
    from . import no_javascript as javascript  # noqa: F401


IN_BROWSER = bool(sys.platform == "emscripten")
_default: "Backend | None" = None
#: Backends by the ids of their devices, but for those that JavaScript numbers.
owners: dict[int, "Backend"] = {}


def default() -> "Backend":
    """For code without a device or a tensor."""
    global _default
    if _default is None:
        found: Any
        if IN_BROWSER:
            from . import browser as found  # which has the methods as functions
        else:
            from .desktop import backend as found
        _default = found
    return _default


def owner(device_id: int) -> "Backend":
    """The backend of a device."""
    return owners.get(device_id) or default()


def owner_of(tensor: Tensor) -> "Backend":
    """The backend of a WebGPU tensor's device."""
    return owner(tensor.__dlpack_device__()[1])


def _loaded() -> "list[Backend]":
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


def features() -> dict[str, Any]:
    """The features of this host.

    Returns
    -------
    dict
        On the desktop: browser (False), webgpu and, if it is available, shaderF16,
        timestampQuery, canBlock. In a browser those of JavaScript's features():

        - webgpu: available; reason, or adapter and maxBufferSize in bytes. Where Python
          cannot block (no JSPI), no adapter is requested: `webgpu.request_device()` then
          shows whether there is one.
        - shaderF16, timestampQuery, jspi, float16Array, using, unsafeEval, isolated, worker.
        - browser: True; canBlock: whether Python can block here and now.

    Examples
    --------
    >>> dlw.features()["webgpu"]["available"]
    True
    """
    return default().features()
