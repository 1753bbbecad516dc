"""Modules that are packages beside dlpack_web now: importing one says what to install.
Until 1.0."""

import sys
from typing import Any

#: By the module that it was. The distribution has dashes for underscores.
MOVED = {"dlpack_web.tinygrad": "dlpack_web_tinygrad"}


class Finder:
    """The last one on sys.meta_path."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name in MOVED:
            raise ImportError(
                f"{name} is the package {MOVED[name].replace('_', '-')} now: install that, "
                f"and import {MOVED[name]}"
            )


sys.meta_path.append(Finder())
