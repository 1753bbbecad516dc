"""onnxruntime's Python API in Pyodide, over onnxruntime-web: `from dlpack_web import onnxruntime`.

In a page the classes are these; on the desktop this module is PyPI's onnxruntime itself. So a
script that runs there runs here, on the GPU:

    from dlpack_web import onnxruntime
    onnxruntime.install()          # only then does `import onnxruntime` find it
    import onnxruntime as ort
    session = ort.InferenceSession("model.onnx", providers=["WebGPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})

Where Python cannot wait (no JSPI): `await InferenceSession.create(...)` and
`await session.run_async(...)`. onnxruntime-web is loaded when it is first needed; `load()`
says where it is. Nothing runs twice at once: runs of all sessions take turns.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.platform == "emscripten":
    from . import _onnxruntime_state as _state
    from ._onnxruntime_binding import IOBinding
    from ._onnxruntime_feeds import NodeArg
    from ._onnxruntime_library import (
        get_available_providers,
        get_device,
        load,
        set_default_logger_severity,
        version,
    )
    from ._onnxruntime_options import (
        ExecutionMode,
        GraphOptimizationLevel,
        RunOptions,
        SessionOptions,
    )
    from ._onnxruntime_session import InferenceSession, ModelMetadata
    from ._onnxruntime_value import OrtValue

    get_all_providers = get_available_providers

    def _module(name: str, **contents: Any) -> ModuleType:
        made = ModuleType(f"{__name__}.{name}")
        vars(made).update(contents)
        return made

    _classes = {
        name: value for name, value in vars(_state).items() if isinstance(value, type)
    }
    capi: Any = _module(
        "capi",
        onnxruntime_pybind11_state=_module(
            "capi.onnxruntime_pybind11_state",
            **_classes,
            GraphOptimizationLevel=GraphOptimizationLevel,
            SessionOptions=SessionOptions,
            RunOptions=RunOptions,
        ),
        onnxruntime_inference_collection=_module(
            "capi.onnxruntime_inference_collection",
            InferenceSession=InferenceSession,
            IOBinding=IOBinding,
            OrtValue=OrtValue,
        ),
    )

    def __getattr__(name: str) -> Any:
        if name == "__version__":  # known when it is loaded
            return version()
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: onnxruntime-web has nothing "
            "that it could be, or it is not needed in a page"
        )

    def install() -> None:
        """Lets `import onnxruntime` find this module, everywhere in this Python.

        RuntimeError if another onnxruntime was imported already. On the desktop it does
        nothing.

        >>> from dlpack_web import onnxruntime
        >>> onnxruntime.install()
        >>> import onnxruntime as ort
        >>> ort.get_device()
        'WEBGPU'
        """
        here = sys.modules[__name__]
        if sys.modules.get("onnxruntime", here) is not here:
            raise RuntimeError("another onnxruntime was imported already")
        names = {"": here, ".capi": capi}
        names |= {
            f".capi.{name}": value
            for name, value in vars(capi).items()
            if isinstance(value, ModuleType)
        }
        sys.modules.update(
            {f"onnxruntime{name}": value for name, value in names.items()}
        )

else:
    try:
        import onnxruntime as _real
    except ImportError as error:
        raise ImportError(
            "outside of a browser dlpack_web.onnxruntime is the package onnxruntime: "
            "pip install onnxruntime"
        ) from error
    from onnxruntime import *

    def __getattr__(name: str) -> Any:
        return getattr(_real, name)

    def install() -> None:
        """Nothing: `import onnxruntime` finds the package."""

    async def load(module_or_url: Any = None, *, threads: int = 1) -> None:
        """Nothing: the package is there."""


__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "capi",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "install",
    "load",
    "set_default_logger_severity",
]
