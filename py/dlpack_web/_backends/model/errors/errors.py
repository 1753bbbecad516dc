"""Faults travel with the data, as in the browser.

A driver raises GPU errors within the call that caused them. They are kept with the
tensors that the call should have written, and reading one of those raises the error. A
fault that nothing reads becomes a warning: after a second if an event loop runs, else
when nothing holds it any more, or at exit.
"""

import asyncio
import atexit
import threading
import weakref
from contextlib import suppress

from .... import _core
from ...calls import Call, calling, warn
from .. import messages


class Fault:
    """One failure, shared by all operations that depend on it."""

    def __init__(self, message: str, label: str | None = None, line: int | None = None):
        self.message, self.label, self.line = message, label, line
        self.call: Call = calling()
        self.reported = False
        _unreported.add(self)
        with suppress(RuntimeError):  # no event loop runs
            loop = asyncio.get_running_loop()
            loop.call_later(_GRACE, _report, weakref.ref(self))

    def exception(self) -> Exception:
        """A new exception for each reader: its traceback keeps tensors alive."""
        self.reported = True
        where = f"called at {self.call.filename}:{self.call.lineno}"
        if self.label is None:
            return BufferError(f"{self.message}\n{where}")
        error = _core.KernelError(f"{self.message}\n{where}")
        error.label, error.line = self.label, self.line
        error.filename, error.lineno = self.call.filename, self.call.lineno
        return error

    def report(self) -> None:
        if not self.reported:
            self.reported = True
            warn(self.message, self.call)

    def __del__(self) -> None:
        self.report()


class NotRun(Fault):
    """Of elements that a recorded kernel computes, until it runs, and of those that were
    computed from them meanwhile."""

    def __init__(self, faults: "Faults") -> None:
        super().__init__(messages.not_run())
        self.reported = True
        self.batch: object = None  # which computes them: its `token`
        self._faults = weakref.ref(faults)

    def ends(self, faults: "Faults", token: object) -> bool:
        """Whether a run of that batch ends it in that buffer."""
        return self.batch is token and self._faults() is faults


class Faults:
    """Faults of the bytes of one GPUBuffer, for all tensors over it."""

    __slots__ = ("__weakref__", "_found")

    def __init__(self) -> None:
        # Replaced as a whole: others read it, and may replace it, meanwhile.
        self._found: tuple[tuple[int, int, Fault], ...] = ()

    def among(self, start: int, end: int) -> Fault | None:
        """The first fault of the bytes from `start` to `end`."""
        for low, high, fault in self._found:
            if max(low, start) < min(high, end):
                return fault
        return None

    def note(self, start: int, end: int, fault: Fault | None) -> None:
        """Records that bytes were written, with `fault` if that failed. Their earlier
        faults are gone."""
        if start >= end or (fault is None and not self._found):
            return
        while True:
            before = self._found
            rest = [part for each in before for part in _outside(each, start, end)]
            after = (*rest, (start, end, fault)) if fault is not None else (*rest,)
            with _noting:
                if before is self._found:
                    self._found = after
                    return


def _outside(
    piece: tuple[int, int, Fault], start: int, end: int
) -> list[tuple[int, int, Fault]]:
    """The parts of a piece outside of the bytes from `start` to `end`."""
    low, high, fault = piece
    rest = (low, min(high, start), fault), (max(low, end), high, fault)
    return [each for each in rest if each[0] < each[1]]


#: Held for one step, within which nothing else runs.
_noting = threading.RLock()

_unreported: "weakref.WeakSet[Fault]" = weakref.WeakSet()


_GRACE = 1.0  # seconds that a fault waits for a reader


def _report(fault: "weakref.ref[Fault]") -> None:
    found = fault()
    if found is not None:
        found.report()


@atexit.register
def _report_all() -> None:
    for fault in list(_unreported):
        fault.report()
