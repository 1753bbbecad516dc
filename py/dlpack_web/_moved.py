"""Modules that are packages beside dlpack_web now: importing one says what to install,
until 1.0. And names of dlpack_web.webgpu: importing one from dlpack_web says where it is."""

import sys
from typing import Any

from . import webgpu

#: By the module that it was. The distribution has dashes for underscores.
MOVED = {
    "dlpack_web.onnxruntime": "dlpack_web_onnxruntime",
    "dlpack_web.tinygrad": "dlpack_web_tinygrad",
    "dlpack_web.widget": "dlpack_web_page.widget",
    "dlpack_web.wire": "dlpack_web_page.wire",
}
WEBGPU = {f"dlpack_web.{name}": f"dlpack_web.webgpu.{name}" for name in webgpu.__all__}


class Finder:
    """The last one on sys.meta_path."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name in WEBGPU:
            raise ImportError(f"there is no {name}: use {WEBGPU[name]}")
        if name in MOVED:
            package = MOVED[name].partition(".")[0].replace("_", "-")
            raise ImportError(
                f"{name} is in the package {package} now: install that, and import "
                f"{MOVED[name]}"
            )


sys.meta_path.append(Finder())
