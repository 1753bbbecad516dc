"""Where a call of ours was made, by which a fault of the GPU is found to be its."""

import sys
import warnings
from types import CodeType
from typing import NamedTuple

# The packages that are ours, as the frames of their functions have them.
_ROOT = __name__.partition(".")[0]
_ROOMS = (
    "_backends",
    "_backends.browser",
    "_backends.desktop",
    "_files",
    "_layout",
    "_tensor",
    "onnxruntime",
)
_OURS = frozenset([_ROOT, *(f"{_ROOT}.{room}" for room in _ROOMS)])


class Call(NamedTuple):
    """A place in somebody's code. Its line is looked up only when it is asked for."""

    code: CodeType
    at: int

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def lineno(self) -> int | None:
        for start, end, line in self.code.co_lines():
            if start <= self.at < end:
                return line
        return None


def calling(inside: int = 1) -> Call:
    """Who called this package: the nearest frame that is not of ours. inside: how many of
    the nearest are surely of ours, which makes this faster."""
    frame = sys._getframe(inside)
    while frame.f_globals.get("__package__") in _OURS and frame.f_back:
        frame = frame.f_back
    return tuple.__new__(
        Call, (frame.f_code, frame.f_lasti)
    )  # its own takes twice as long


def warn(message: str, call: Call | None) -> None:
    """Tells of a fault that nobody read the results of, as a warning of its call."""
    filename, line = (call.filename, call.lineno) if call else ("<unknown>", 0)
    warnings.warn_explicit(message, RuntimeWarning, filename, line or 0)
