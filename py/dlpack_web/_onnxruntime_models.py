"""Models: where their bytes are, and what they say of themselves."""

import os
import posixpath
from typing import Any, NamedTuple

from . import _browser
from ._onnxruntime_options import SessionOptions
from ._onnxruntime_state import NoSuchFile, worded


class ModelMetadata(NamedTuple):
    """What a model says of itself."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = (1 << 63) - 1  # what onnxruntime says where the file does not
    custom_metadata_map: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it


def model_of(
    source: Any, options: SessionOptions, ort: Any
) -> tuple[Any, dict[str, Any]]:
    """The model as JavaScript takes it, and the files that it has its weights in."""
    files = {name: _browser.js_bytes(data) for name, data in options._files.items()}
    if isinstance(source, bytes):
        return _browser.js_bytes(source), files
    if _browser.is_js(source) and getattr(source, "href", None):  # a URL of JavaScript
        return str(source.href), files
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    path = os.fspath(source)
    if os.path.isfile(path):
        model = _browser.read_file(path)
        for name in ort.filesOf(model):
            beside = posixpath.join(posixpath.dirname(path), name)
            if name not in files and os.path.isfile(beside):
                files[name] = _browser.read_file(beside)
        return model, files
    if "://" in path or path.startswith(("blob:", "data:")):
        return path, files
    raise worded(
        NoSuchFile,
        f"Load model from {path} failed:Load model {path} failed. File doesn't exist "
        "among Pyodide's files; a URL is written in full, with https://",
    )
