"""Python's bridge to JavaScript (browser/javascript.py) where there is none."""

import sys
from typing import Never


def calls(*_: object) -> Never:
    raise BufferError(
        "JavaScript is available only in Pyodide, in a browser; this is "
        f"{sys.implementation.name} on {sys.platform}"
    )


Kept = block_on = calls_of = finish = invoke = receive = receive_waiting = wait_for = (
    calls
)


def is_js(x: object) -> bool:
    return False
