"""In IPython, a traceback ends at the user's line instead of within this package.

`%xmode Verbose` shows all frames, and so does a debugger: `%debug` is not affected.
"""

from __future__ import annotations

import sys
import sysconfig
from types import FrameType, TracebackType
from typing import Any

#: Folders of the standard library and of installed packages.
_LIBRARIES = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")
)


def shorten_tracebacks() -> None:
    """Make the running IPython, if there is one, leave out our frames."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    formatter = getattr(shell, "InteractiveTB", None)
    if formatter is None or hasattr(formatter, "_dlpack_web"):
        return
    formatter._dlpack_web = True
    structured = formatter.structured_traceback
    chained = formatter.get_parts_of_chained_exception

    def structured_traceback(
        kind: Any, error: Any, traceback: Any, *options: Any, **named: Any
    ) -> Any:
        if isinstance(traceback, TracebackType) and formatter.mode != "Verbose":
            traceback = users_part(traceback) or traceback
        return structured(kind, error, traceback, *options, **named)

    def get_parts_of_chained_exception(error: Any) -> Any:
        parts = chained(error)
        if not parts or parts[2] is None or formatter.mode == "Verbose":
            return parts
        kind, cause, traceback = parts
        part = users_part(traceback)
        # This package caught the cause, and its own error says what that was.
        return part and (kind, cause, part)

    formatter.structured_traceback = structured_traceback
    formatter.get_parts_of_chained_exception = get_parts_of_chained_exception


def users_part(traceback: TracebackType) -> TracebackType | None:
    """A copy without the frames of this package, and of libraries that it called.

    A callback of the user, which this package called, stays. None if no frame does.
    """
    entries: list[TracebackType] = []
    each: TracebackType | None = traceback
    inside = False
    while each is not None:
        inside = _is_ours(each.tb_frame) or (inside and _is_library(each.tb_frame))
        if not inside:
            entries.append(each)
        each = each.tb_next
    part = None
    for each in reversed(entries):
        part = TracebackType(part, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return part


def _is_ours(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.startswith("dlpack_web")


def _is_library(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen "))
