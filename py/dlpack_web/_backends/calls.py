"""The user's call that a GPU fault belongs to, for error messages."""

import sys
import warnings
from types import CodeType
from typing import NamedTuple

# Our packages, as `__package__` in the globals of their functions.
_ROOT = __name__.partition(".")[0]
_ROOMS = (
    "_backends",
    "_backends.browser",
    "_backends.desktop",
    "_files",
    "_kernels",
    "_layout",
    "_page",
    "_tensor",
    "_wire",
    "onnxruntime",
    "tinygrad",
)
_OURS = frozenset([_ROOT, *(f"{_ROOT}.{room}" for room in _ROOMS)])


class Call(NamedTuple):
    """A place in the user's code. Its line is looked up only when needed."""

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
    """The call into this package: the nearest frame outside of it. inside: how many of
    the nearest frames are surely inside, which makes this faster."""
    frame = sys._getframe(inside)
    while frame.f_globals.get("__package__") in _OURS and frame.f_back:
        frame = frame.f_back
    # Call() would take twice as long.
    return tuple.__new__(Call, (frame.f_code, frame.f_lasti))


def warn(message: str, call: Call | None) -> None:
    """Warns of a fault whose results nothing read, at its call."""
    filename, line = (call.filename, call.lineno) if call else ("<unknown>", 0)
    warn_at(message, filename, line or 0)


def warn_at(message: str, filename: str, line: int) -> None:
    """The same for a place that is already known."""
    warnings.warn_explicit(message, RuntimeWarning, filename, line)
