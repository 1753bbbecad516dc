"""onnxruntime-web: loaded once, at the first use. Settings of it, and of what it lacks."""

from operator import index
from typing import Any

from .._backends.browser import seam
from ._options import CPU_PROVIDER, WASM, WEBGPU
from ._state import translated

_LEVELS = range(5)  # from verbose to fatal


class _Wanted:
    """Settings made before the library is loaded."""

    module: Any = None
    threads = 1
    severity: int | None = None
    # The loaded builds: whether it is the one for the CPU alone -> JavaScript's
    # Library.
    loaded: dict[bool, Any] = {}  # noqa: RUF012 - shared by all sessions


def is_loaded() -> bool:
    """Whether the library is loaded."""
    return bool(_Wanted.loaded)


async def load(module_or_url: Any = None, *, threads: int = 1) -> None:
    """Loads onnxruntime-web, which the first session otherwise does automatically.

    module_or_url: its module (JsProxy), or the URL of a module with its WebAssembly
    beside it. Default: `globalThis.ort`, the package "onnxruntime-web" of an import
    map, or `libraries/ort/` above the page, as in this project's pages and JupyterLite.
    Then sessions on the CPU alone use the build `ort.wasm.bundle.min.mjs`, if it is
    beside: it has operators and dtypes that the build with WebGPU lacks. threads: of
    the WebAssembly, if the page is cross-origin isolated and it is loaded here.
    RuntimeError if another copy is already loaded; ImportError if there is none.

    >>> from dlpack_web import onnxruntime
    >>> await onnxruntime.load()
    >>> onnxruntime.get_device()
    'WEBGPU'
    """
    if _Wanted.loaded:
        if module_or_url is not None:
            raise RuntimeError(
                "onnxruntime-web is already loaded: call load() before the first session"
            )
        return
    _Wanted.module, _Wanted.threads = module_or_url, threads
    await library()


async def library(*, on_cpu: bool = False) -> Any:
    """JavaScript's Library. on_cpu: the build for sessions on the CPU alone."""
    alone = on_cpu and not was_said()
    if alone not in _Wanted.loaded:
        with translated():
            promise = seam.call("onnxruntime", _Wanted.module, _Wanted.threads, alone)
            found = await seam.finish(promise)
        if alone not in _Wanted.loaded:
            _Wanted.loaded[alone] = found
            if _Wanted.severity is not None:
                found.logFrom(_Wanted.severity)
    return _Wanted.loaded[alone]


def was_said() -> bool:
    """Whether `load()` got a module or URL, which all sessions then use."""
    return _Wanted.module is not None


def version() -> str:
    """The version of onnxruntime-web; "" until it is loaded."""
    return next((str(each.version) for each in _Wanted.loaded.values()), "")


def set_default_logger_severity(severity: int) -> None:
    """How much onnxruntime-web logs to the console: from 0, everything, to 4, fatal
    errors. The default is 3. Call it before the first session.

    >>> from dlpack_web import onnxruntime
    >>> onnxruntime.set_default_logger_severity(3)
    """
    severity = index(severity)
    if severity not in _LEVELS:
        raise RuntimeError(
            "Invalid logging severity. Valid values are: 0:Verbose, 1:Info, 2:Warning. "
            "3:Error, 4:Fatal."
        )
    _Wanted.severity = severity
    for each in _Wanted.loaded.values():
        each.logFrom(severity)


def get_available_providers() -> list[str]:
    """Providers for sessions, the default first: WebGPU if the browser has it, and the
    CPU by WebAssembly, also under onnxruntime's name for it.

    >>> from dlpack_web import onnxruntime
    >>> onnxruntime.get_available_providers()[-1]
    'CPUExecutionProvider'
    """
    on_cpu = [WASM, CPU_PROVIDER]
    return [WEBGPU, *on_cpu] if seam.has_webgpu() else on_cpu


def get_device() -> str:
    """ "WEBGPU" if the browser has it, else "CPU"."""
    return "WEBGPU" if seam.has_webgpu() else "CPU"


def set_seed(seed: int) -> None:
    """Nothing: onnxruntime-web chooses seeds itself, and the number is only checked.
    Operators such as RandomNormal have an attribute for it."""
    index(seed)


def disable_telemetry_events() -> None:
    """Nothing: onnxruntime-web has no telemetry."""


enable_telemetry_events = disable_telemetry_events


def set_default_logger_verbosity(verbosity: int) -> None:
    """Nothing: `set_default_logger_severity` sets how much is logged."""
    index(verbosity)


def set_global_thread_pool_sizes(intra_op: int = 0, inter_op: int = 0) -> None:
    """Nothing: `load(threads=)` sets how many threads the WebAssembly has."""


def preload_dlls(*args: Any, **options: Any) -> None:
    """Nothing: a page has no libraries to preload."""


def has_collective_ops() -> bool:
    """False."""
    return False
