"""What a page answers: results, and errors as exceptions."""

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any

from dlpack_web import CopyError, DeviceLostError, KernelError, ReleasedError
from dlpack_web.internal import Call, calling

_CLASSES: dict[str, type[Exception]] = {
    "CopyError": CopyError,
    "DeviceLostError": DeviceLostError,
    "KernelError": KernelError,
    "RangeError": ValueError,
    "ReleasedError": ReleasedError,
    "TypeError": TypeError,
}
_FAULTS = "KernelError", "DeviceError"


def warn_at(message: str, filename: str, line: int) -> None:
    """Warns of an error that nothing raised, at its place in the user's code."""
    warnings.warn_explicit(message, RuntimeWarning, filename, line)


class Sites:
    """The places of calls in the user's code, each with a number that the page returns
    with the errors of the call."""

    def __init__(self) -> None:
        self._count = count(1)
        self._numbers: dict[tuple[str, int], int] = {}
        self._places: dict[int, tuple[str, int]] = {}

    def here(self) -> int:
        """The number of the call that is running."""
        return self.number_of(calling(2))

    def number_of(self, call: Call) -> int:
        place = call.filename, call.lineno or 0
        number = self._numbers.get(place)
        if number is None:
            number = next(self._count)
            self._places[number] = place
            number = self._numbers.setdefault(place, number)
        return number

    def of(self, number: Any) -> tuple[str, int] | None:
        """The place with a number; None: there is none."""
        return self._places.get(number) if type(number) is int else None


def exception_of(error: Any, sites: Sites) -> Exception:
    """The exception for an error of the page."""
    fields = error if isinstance(error, dict) else {}
    message = str(fields.get("message", "the page failed"))[:10_000]
    made = _CLASSES.get(str(fields.get("name")), BufferError)(message)
    place = sites.of(fields.get("site"))
    if place is not None:
        made.args = (f"{message}\ncalled at {place[0]}:{place[1]}",)
    if isinstance(made, KernelError):
        line = fields.get("line")
        made.label = str(fields.get("label", ""))[:1000]
        made.line = line if type(line) is int else None
        made.filename, made.lineno = place or (None, None)
    return made


def pending() -> Future[Any]:
    """A future that those who wait for it cannot cancel."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def end(future: Future[Any], found: object) -> None:
    """Ends it with a value or an exception, unless that was done."""
    if future.done():
        return
    if isinstance(found, BaseException):
        future.set_exception(found)
    else:
        future.set_result(found)


class Reply(Future[Any]):
    """What the page answers to one question."""

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.number = 0  # as long as it was not asked
        #: Names of elements that were asked for and are not there yet.
        self.missing: set[str] = set()


class Replies:
    """Questions to the page that are open, by number."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, Reply] = {}

    def add(self, reply: Reply) -> None:
        number = reply.number = self._last + 1
        self._open[number], self._last = reply, number

    def forget(self, reply: Reply) -> None:
        if self._open.get(reply.number) is reply:
            self._open.pop(reply.number, None)

    def take(self, body: dict[str, Any], sites: Sites) -> None:
        """Ends the question that this answers; BufferError: there is none such."""
        number = body.get("reply")
        if type(number) is not int or not 0 < number <= self._last:
            raise BufferError(f"the page answers {number!r:.50}, which was not asked")
        reply = self._open.get(number)
        if reply is None:  # nobody waits for it any more, or for its error
            error = body.get("error")
            if isinstance(error, dict) and error.get("name") in _FAULTS:
                place = sites.of(error.get("site")) or ("<unknown>", 0)
                warn_at(str(error.get("message"))[:10_000], *place)
            return
        value = body.get("value")
        if "error" in body:
            end(reply, exception_of(body["error"], sites))
        elif reply.missing:
            end(reply, BufferError("the page answered before it had sent all elements"))
        else:
            end(reply, value if isinstance(value, (int, float)) else None)
        self.forget(reply)

    def fail(self, make: Callable[[], Exception]) -> None:
        """Ends all, each with an exception of its own."""
        while self._open:
            for reply in [*self._open.values()]:
                end(reply, make())
                self.forget(reply)
