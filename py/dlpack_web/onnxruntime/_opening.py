"""Loads a model for a session, with fallbacks if the GPU or its build does not support it."""

import os
import posixpath
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._backends import browser
from .._backends.browser import seam
from .._tensor.device import Device, first_device, webgpu_device
from ._library import get_available_providers, library, was_said
from ._options import Given, Providers, SessionOptions
from ._state import Fail, InvalidGraph, InvalidProtobuf, NoSuchFile, translated, worded
from ._state import NotImplemented as NotThere


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
    files = {name: seam.js_bytes(data) for name, data in options._files.items()}
    if isinstance(source, bytes):
        return seam.js_bytes(source), files
    if seam.is_js(source) and getattr(source, "href", None):  # a JavaScript URL
        return str(source.href), files
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    path = os.fspath(source)
    if not path:
        raise TypeError("the path of the model is empty")
    if os.path.isdir(path):
        raise worded(InvalidProtobuf, f"Load model from {path} failed: it is a folder")
    if os.path.isfile(path):
        model = seam.read_file(path)
        for name in ort.filesOf(model):
            beside = posixpath.join(posixpath.dirname(path), name)
            if name not in files and os.path.isfile(beside):
                files[name] = seam.read_file(beside)
        return model, files
    if "://" in path or path.startswith(("blob:", "data:")):
        return path, files
    raise worded(
        NoSuchFile,
        f"Load model from {path} failed:Load model {path} failed. File doesn't "
        "exist in Pyodide's file system; write a URL in full, with https://",
    )


class Opened(NamedTuple):
    """JavaScript's session with its device and providers, and the model's
    properties."""

    kept: seam.Kept
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
        others = _instead(providers, error)
        if others is None and isinstance(error, BufferError):
            raise Fail(f"[ONNXRuntimeError] : 1 : FAIL : {error}") from None
        if others is None:
            raise _advised(error, providers) from None
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
        kept = seam.Kept(
            ort.open,
            model,
            seam.options(files),
            seam.options(wanted),
            usual and usual.gpu,
            device and device.gpu,
        )
        await seam.finish(kept.js.ready)
        facts = kept.js.facts.to_py()
        gpu = kept.js.device
        used = webgpu_device(browser.use_device(gpu)) if gpu else None
    return Opened(kept, used, providers, facts)


# onnxruntime-web's messages about operators and dtypes that a build lacks.
_LACKING = re.compile(
    "Could not find an implementation|is not a registered function/op|No Op registered"
    r"|Provider type for \w+ node .* is not set"
)


def _instead(providers: Providers, error: Exception) -> Providers | None:
    """The providers to try if those on WebGPU fail; None: there are none."""
    if not providers.on_gpu:
        return None
    if isinstance(error, BufferError):
        return providers.without_gpu()
    lacks = _LACKING.search(str(error)) and not was_said()
    return providers.without_gpu() if lacks else None


def _advised(error: Exception, providers: Providers) -> Exception:
    """The error about what a build lacks, with advice."""
    if not _LACKING.search(str(error)):
        return error
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
        return first_device()
    except BufferError:
        return None
