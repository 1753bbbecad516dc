"""onnxruntime's Python API in Pyodide, over onnxruntime-web.

In a page the classes are these; on the desktop this module is PyPI's onnxruntime
itself. So a script for the desktop also runs in a page, on the GPU:

    import dlpack_web_onnxruntime as onnxruntime
    onnxruntime.install()          # only then does `import onnxruntime` find it
    import onnxruntime as ort
    session = ort.InferenceSession("model.onnx", providers=["WebGPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})

Where Python cannot block (no JSPI), use `await InferenceSession.create(...)` and
`await session.run_async(...)`. onnxruntime-web is loaded at the first use; `load()` sets
where it is. The runs of all sessions take turns.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

_VERSION = "0.1.0"

if TYPE_CHECKING or sys.platform == "emscripten":
    import dlpack_web as _dlw

    if _dlw.__version__ != _VERSION:
        raise ImportError(
            f"dlpack-web-onnxruntime is {_VERSION}, and dlpack-web is {_dlw.__version__}: "
            "install both in the same version"
        )
    from . import _backend, _state
    from ._binding import IOBinding
    from ._feeds import NodeArg
    from ._library import (
        ModelMetadata,
        disable_telemetry_events,
        enable_telemetry_events,
        get_available_providers,
        get_device,
        has_collective_ops,
        load,
        preload_dlls,
        set_default_logger_severity,
        set_default_logger_verbosity,
        set_global_thread_pool_sizes,
        set_seed,
        version,
    )
    from ._names import REFUSED as _REFUSED
    from ._names import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        OrtAllocatorType,
        OrtCompileApiFlags,
        OrtDeviceMemoryType,
        OrtDeviceVendorId,
        OrtExecutionProviderDevicePolicy,
        OrtHardwareDeviceType,
        OrtMemoryInfoDeviceType,
        OrtMemType,
        OrtSparseFormat,
    )
    from ._options import RunOptions, SessionOptions
    from ._session import InferenceSession
    from ._values import OrtDevice, OrtValue, OrtValueVector, copy_tensors

    get_all_providers = get_available_providers
    get_version_string = version
    package_name = "onnxruntime"
    cuda_version = ""
    __path__ = []  # install() names the modules in it
    __author__ = "Microsoft"

    def get_build_info() -> str:
        """onnxruntime-web's version in a sentence."""
        return f"ORT Build Info: onnxruntime-web {version() or '(not loaded yet)'}"

    def print_debug_info() -> None:
        """Prints the version, the providers and the device."""
        print(get_build_info())
        print(
            f"providers: {', '.join(get_available_providers())}; device: {get_device()}"
        )

    globals().update(_REFUSED)

    def _package(name: str, **contents: Any) -> ModuleType:
        made = ModuleType(f"onnxruntime.{name}")
        made.__path__ = []  # its modules are in sys.modules
        vars(made).update(contents)
        return made

    _public = {
        name: value for name, value in globals().items() if not name.startswith("_")
    }
    _classes = {
        name: value for name, value in vars(_state).items() if isinstance(value, type)
    }
    _all = {**_public, **_classes, "OrtValueVector": OrtValueVector}
    capi: Any = _package(
        "capi",
        onnxruntime_pybind11_state=_package("capi.onnxruntime_pybind11_state", **_all),
        _pybind_state=_package("capi._pybind_state", **_all),
        onnxruntime_inference_collection=_package(
            "capi.onnxruntime_inference_collection", **_public
        ),
    )
    backend: Any = _package(
        "backend",
        **{
            name: getattr(_backend, name)
            for name in ("is_compatible", "prepare", "run", "supports_device")
        },
        backend=_package(
            "backend.backend", OnnxRuntimeBackend=_backend.OnnxRuntimeBackend
        ),
        backend_rep=_package(
            "backend.backend_rep", OnnxRuntimeBackendRep=_backend.OnnxRuntimeBackendRep
        ),
    )

    def __getattr__(name: str) -> Any:
        if name == "__version__":  # known after loading
            return version()
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: onnxruntime-web has no "
            "counterpart, or a page does not need it"
        )

    def install() -> None:
        """Lets `import onnxruntime` find this module, everywhere in this Python.

        RuntimeError if another onnxruntime has already been imported. On the desktop it
        does nothing.

        >>> import dlpack_web_onnxruntime as onnxruntime
        >>> onnxruntime.install()
        >>> import onnxruntime as ort
        >>> ort.get_device()
        'WEBGPU'
        """
        here = sys.modules[__name__]
        if sys.modules.get("onnxruntime", here) is not here:
            raise RuntimeError("another onnxruntime is already imported")
        sys.modules["onnxruntime"] = here
        for package in (capi, backend):
            sys.modules[package.__name__] = package
            for part in vars(package).values():
                if isinstance(part, ModuleType):
                    sys.modules[part.__name__] = part

else:
    try:
        import onnxruntime as _real
    except ImportError as error:
        raise ImportError(
            "outside a browser dlpack_web_onnxruntime is the package onnxruntime: pip "
            "install onnxruntime"
        ) from error
    from onnxruntime import *

    __path__ = _real.__path__  # modules in it are the package's

    def __getattr__(name: str) -> Any:
        return getattr(_real, name)

    def install() -> None:
        """Nothing: `import onnxruntime` finds the package."""

    async def load(module_or_url: Any = None, *, threads: int = 1) -> None:
        """Nothing: the package is there."""


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "capi",
    "copy_tensors",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "install",
    "load",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]
