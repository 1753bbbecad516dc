"""Modules that are packages beside dlpack_web now: importing one says what to install,
until 1.0. And names of dlpack_web.webgpu: importing one from dlpack_web says where it is."""

import sys
from typing import Any

from . import webgpu

#: By the module that it was. The distribution has dashes for underscores.
MOVED = {
    f"dlpack_web.{name}": f"dlpack_web_{name}" for name in ("onnxruntime", "tinygrad")
}
WEBGPU = {f"dlpack_web.{name}": f"dlpack_web.webgpu.{name}" for name in webgpu.__all__}


class Finder:
    """The last one on sys.meta_path."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name in WEBGPU:
            raise ImportError(f"there is no {name}: use {WEBGPU[name]}")
        if name in MOVED:
            raise ImportError(
                f"{name} is the package {MOVED[name].replace('_', '-')} now: install that, "
                f"and import {MOVED[name]}"
            )


sys.meta_path.append(Finder())
