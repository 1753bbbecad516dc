"""Python's bridge to JavaScript (browser/javascript.py) where there is none."""

import sys
from typing import Never


def calls() -> Never:
    raise BufferError(
        "JavaScript is available only in Pyodide, in a browser; this is "
        f"{sys.implementation.name} on {sys.platform}"
    )


def is_js(x: object) -> bool:
    return False
