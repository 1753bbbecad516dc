"""What a page answers: results, and errors as exceptions."""

from concurrent.futures import Future
from typing import Any

from .. import _core
from .._backends.calls import calling

_CLASSES: dict[str, type[Exception]] = {
    "CopyError": _core.CopyError,
    "DeviceLostError": _core.DeviceLostError,
    "KernelError": _core.KernelError,
    "RangeError": ValueError,
    "ReleasedError": _core.ReleasedError,
    "TypeError": TypeError,
}


class Sites:
    """The places of calls in the user's code, each with a number that the page returns
    with the errors of the call."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._places: list[tuple[str, int]] = []

    def here(self) -> int:
        """The number of the call that is running."""
        call = calling(2)
        place = call.filename, call.lineno or 0
        number = self._numbers.get(place)
        if number is None:
            self._places.append(place)
            number = self._numbers[place] = len(self._places)
        return number

    def of(self, number: Any) -> tuple[str, int] | None:
        """The place with a number; None: there is none."""
        known = type(number) is int and 0 < number <= len(self._places)
        return self._places[number - 1] if known else None


def exception_of(error: Any, sites: Sites) -> Exception:
    """The exception for an error of the page."""
    facts = error if isinstance(error, dict) else {}
    message = str(facts.get("message", "the page failed"))[:10_000]
    made = _CLASSES.get(str(facts.get("name")), BufferError)(message)
    place = sites.of(facts.get("site"))
    if place is not None:
        made.args = (f"{message}\ncalled at {place[0]}:{place[1]}",)
    if isinstance(made, _core.KernelError):
        line = facts.get("line")
        made.label = str(facts.get("label", ""))[:1000]
        made.line = line if type(line) is int else None
        made.filename, made.lineno = place or (None, None)
    return made


def pending() -> Future[Any]:
    """A future that those who wait for it cannot cancel."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


class Replies:
    """Questions to the page that are open, by number."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, Future[Any]] = {}

    def new(self) -> tuple[int, Future[Any]]:
        self._last += 1
        future = pending()
        self._open[self._last] = future
        return self._last, future

    def forget(self, number: int) -> None:
        self._open.pop(number, None)

    def take(self, body: dict[str, Any], sites: Sites) -> None:
        """Ends the question that this answers; BufferError: there is none such."""
        number = body.get("reply")
        if type(number) is not int or not 0 < number <= self._last:
            raise BufferError(f"the page answers {number!r:.50}, which was not asked")
        future = self._open.pop(number, None)
        if future is None:
            return  # nobody waits for it any more
        if "error" in body:
            future.set_exception(exception_of(body["error"], sites))
        else:
            future.set_result(body.get("value"))

    def fail(self, make: Any) -> None:
        """Ends all, each with an exception of its own."""
        found, self._open = self._open, {}
        for future in found.values():
            future.set_exception(make())
