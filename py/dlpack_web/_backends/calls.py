"""The code that runs now: the user's call that a GPU fault belongs to, and the batch that
records its kernels."""

import sys
import warnings
from contextvars import ContextVar
from types import CodeType
from typing import Any, NamedTuple

from .. import _core

_ROOT = __name__.partition(".")[0]


class _Ours(dict[object, bool]):
    """Whether a package is ours, or one beside it, by `__package__` in the globals of its functions."""

    def __missing__(self, package: object) -> bool:
        root = str(package).partition(".")[0]
        ours = self[package] = root == _ROOT or root.startswith(f"{_ROOT}_")
        return ours


_OURS = _Ours()


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
    while _OURS[frame.f_globals.get("__package__")] and frame.f_back:
        frame = frame.f_back
    # Call() would take twice as long.
    return tuple.__new__(Call, (frame.f_code, frame.f_lasti))


def warn(message: str, call: Call | None) -> None:
    """Warns of a fault whose results nothing read, at its call."""
    filename, line = (call.filename, call.lineno) if call else ("<unknown>", 0)
    warnings.warn_explicit(message, RuntimeWarning, filename, line or 0)


#: The last Batch of each thread and asyncio task, which tasks inherit. It is weak: an
#: interrupt may come before the block begins, and then nothing ends the recording.
current: ContextVar[Any] = ContextVar("dlpack_web batch", default=None)


def recorder() -> Any:
    """The Batch that records kernels here; None: they run."""
    last = current.get()
    if last is None:
        return None
    found = last()
    return found if found is not None and found._recording else None


def refuse_recorded(tensor: _core.Tensor, writing: bool) -> None:
    """BufferError if a recorded kernel is to use this tensor later."""
    batch = recorder()
    if batch is not None and batch._uses(tensor, writing):
        done, how = ("written", "uses") if writing else ("read", "writes to")
        raise BufferError(
            f"this tensor cannot be {done} here: a kernel that the batch has recorded "
            f"{how} it, and runs only with run(): do this before the batch is recorded, "
            "or after run()"
        )
