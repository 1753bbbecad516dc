"""onnxruntime-web, loaded once at the first use, and its settings. Opens models for sessions, with
fallbacks if the GPU or its build does not support one."""

import os
import posixpath
import re
import warnings
from collections.abc import Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from dlpack_web import Device, DLDeviceType, internal, webgpu
from dlpack_web.backends import default

from . import _javascript as javascript
from ._options import CPU_PROVIDER, WASM, WEBGPU, Given, Providers, SessionOptions
from ._state import Fail, InvalidGraph, InvalidProtobuf, NoSuchFile, translated, worded
from ._state import NotImplemented as NotThere

if TYPE_CHECKING:
    from ._calls import Sessions

_LEVELS = range(5)  # from verbose to fatal


class _Wanted:
    """Settings made before the library is loaded."""

    module: Any = None
    threads = 1
    severity: int | None = None
    # The loaded builds: whether it is the one for the CPU alone -> JavaScript's
    # Library.
    loaded: dict[bool, Any] = {}  # noqa: RUF012 - shared by all sessions


async def load(module_or_url: Any = None, *, threads: int = 1) -> None:
    """Loads onnxruntime-web, which the first session otherwise does automatically.

    Parameters
    ----------
    module_or_url : JsProxy or str, optional
        Its module, or the URL of a module with its WebAssembly beside it. Default:
        `globalThis.ort`, the package "onnxruntime-web" of an import map, or `libraries/ort/`
        above the page, as in this project's pages and JupyterLite. Then sessions on the CPU
        alone use the build `ort.wasm.bundle.min.mjs`, if it is beside: it has operators and
        dtypes that the build with WebGPU lacks.
    threads : int
        Of the WebAssembly, if the page is cross-origin isolated and it is loaded here.

    Raises
    ------
    RuntimeError
        Another copy is already loaded.
    ImportError
        There is none.

    Examples
    --------
    >>> import dlpack_web_onnxruntime as onnxruntime
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
        try:
            calls: Sessions = await internal.calls_of(__package__)
        except BufferError as error:  # the page forbids eval
            raise ImportError(str(error)) from None
        with translated():
            given = _Wanted.module, _Wanted.threads, alone
            promise = internal.invoke(calls.library, *given)
            found = await internal.finish(promise)
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
    """Sets how much onnxruntime-web logs to the console. Call it before the first session.

    Parameters
    ----------
    severity : int
        From 0, everything, to 4, fatal errors; without a call, 3.

    Examples
    --------
    >>> import dlpack_web_onnxruntime as onnxruntime
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

    >>> import dlpack_web_onnxruntime as onnxruntime
    >>> onnxruntime.get_available_providers()[-1]
    'CPUExecutionProvider'
    """
    on_cpu = [WASM, CPU_PROVIDER]
    return [WEBGPU, *on_cpu] if javascript.has_webgpu() else on_cpu


def get_device() -> str:
    """ "WEBGPU" if the browser has it, else "CPU"."""
    return "WEBGPU" if javascript.has_webgpu() else "CPU"


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


class ModelMetadata:
    """A model's own metadata."""

    producer_name = ""
    graph_name = ""
    domain = ""
    description = ""
    graph_description = ""
    version = (1 << 63) - 1  # onnxruntime's value if the file has none

    def __init__(
        self, custom_metadata_map: dict[str, str] | None = None, **facts: Any
    ) -> None:
        self._map = dict(custom_metadata_map or {})
        vars(self).update(facts)

    @property
    def custom_metadata_map(self) -> dict[str, str]:
        """A copy of the custom keys and values."""
        return dict(self._map)


def model_of(
    source: Any, options: SessionOptions, ort: Any
) -> tuple[Any, dict[str, Any]]:
    """The model in JavaScript's form, and the files with its weights."""
    files = {name: javascript.js_bytes(data) for name, data in options._files.items()}
    folder = options._folder
    if isinstance(source, bytes):
        model = javascript.js_bytes(source)
        return model, files if folder is None else _with_those_in(
            folder, model, files, ort
        )
    if javascript.is_js(source) and getattr(source, "href", None):  # a JavaScript URL
        return str(source.href), files
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    path = os.fspath(source)
    if not path:
        raise TypeError("the path of the model is empty")
    if os.path.isdir(path):
        raise worded(InvalidProtobuf, f"Load model from {path} failed: it is a folder")
    if os.path.isfile(path):
        model = javascript.read_file(path)
        if folder is None:
            folder = posixpath.dirname(path)
        return model, _with_those_in(folder, model, files, ort)
    if "://" in path or path.startswith(("blob:", "data:", "/", "./", "../")):
        return path, files
    raise worded(
        NoSuchFile,
        f"Load model from {path} failed:Load model {path} failed. File doesn't "
        "exist in Pyodide's file system; begin a URL with https://, / or ./",
    )


def _with_those_in(
    folder: str, model: Any, files: dict[str, Any], ort: Any
) -> dict[str, Any]:
    """The files, and those of the model's others that the folder has."""
    paths = {name: posixpath.join(folder, name) for name in ort.filesOf(model)}
    found = {
        name: javascript.read_file(path)
        for name, path in paths.items()
        if name not in files and os.path.isfile(path)
    }
    return files | found


class Opened(NamedTuple):
    """JavaScript's session, its device and providers, and facts of the model."""

    kept: "internal.Kept[Any]"
    device: Device | None
    providers: Providers
    facts: dict[str, Any]


async def open_model(
    source: Any,
    options: SessionOptions,
    given: Given,
    provider_options: Sequence[Mapping[str, Any]] | None,
) -> Opened:
    """Loads a model for the first providers that support it."""
    providers = Providers(given, provider_options, get_available_providers())
    try:
        return await _open_with(source, options, providers)
    except (BufferError, NotThere, InvalidGraph, Fail) as error:
        # WebGPU is not available after all, or its build lacks an operator.
        lacks = _LACKING.search(str(error)) is not None
        others = None
        if isinstance(error, BufferError) or (lacks and not was_said()):
            others = providers.without_gpu()
        if others is None and isinstance(error, BufferError):
            raise Fail(f"[ONNXRuntimeError] : 1 : FAIL : {error}") from None
        if others is None:
            raise (_advised(error, providers) if lacks else error) from None
        try:
            opened = await _open_with(source, options, others)
        except (NotThere, InvalidGraph, Fail):
            raise error from None
        warnings.warn(
            f"the session runs on {others.names}, not on WebGPU: {error}",
            stacklevel=2,
        )
        return opened


async def _open_with(
    source: Any, options: SessionOptions, providers: Providers
) -> Opened:
    ort = await library(on_cpu=not providers.on_gpu)
    model, files = model_of(source, options, ort)
    wanted = options._to_js() | {"executionProviders": providers.kinds}
    device = usual = None
    if providers.on_gpu:
        device = providers.device
        usual = _usual_device()
    with translated(BufferError):
        kept = internal.Kept(
            ort.open,
            model,
            javascript.options(files),
            javascript.options(wanted),
            usual and usual.gpu,
            device and device.gpu,
        )
        await internal.finish(kept.js.ready)
        facts = kept.js.facts.to_py()
        gpu = kept.js.device
        used = webgpu.use_device(gpu) if gpu else None
    return Opened(kept, used, providers, facts)


# onnxruntime-web's messages about operators and dtypes that a build lacks.
_LACKING = re.compile(
    "Could not find an implementation|is not a registered function/op|No Op registered"
    r"|Provider type for \w+ node .* is not set|MLDataType for: .* is not currently"
)


def _advised(error: Exception, providers: Providers) -> Exception:
    """The error about what a build lacks, with advice."""
    if was_said():
        helps = (
            "load() was called with this build: ort.wasm.bundle.min.mjs and ort.all "
            "support more"
        )
    elif providers.on_gpu:
        helps = "providers=['CPUExecutionProvider'] loads a build that supports more"
    else:
        return error
    return type(error)(f"{error}\n{helps}")


def _usual_device() -> Device | None:
    """The default device of tensors."""
    try:
        for number in default().device_ids():
            return Device(DLDeviceType.kDLWebGPU, number)
    except BufferError:
        pass
    return None
