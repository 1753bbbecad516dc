"""Models: their bytes and their metadata."""

import os
import posixpath
from typing import Any

from .._backends.browser import seam
from ._options import SessionOptions
from ._state import InvalidProtobuf, NoSuchFile, worded


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
