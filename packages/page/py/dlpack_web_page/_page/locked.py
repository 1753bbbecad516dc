"""Methods of which one runs at a time."""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, cast


class Locked:
    """What has such methods. Each is a plain `with` around the work."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._later: deque[Callable[[], object]] = deque()
        self._is_cut = False  # an exception, perhaps an interrupt, has ended one

    @property
    def is_inside(self) -> bool:
        """Whether this thread is in such a method: in a finalizer or in other code that
        the method calls. It cannot wait, then."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _run(self, call: Callable[[], None]) -> None:
        if self._is_cut:
            self._mend()
        self._is_cut = True
        try:
            call()
        finally:
            while self._later:
                _Last(self._later.popleft())
        self._is_cut = False

    def _mend(self) -> None:
        """Completes what an interrupt has left half done."""


def locked[F: Callable[..., None]](method: F) -> F:
    """Such a method. Within another one of the same thread it is done right after that,
    and its errors go to sys.unraisablehook."""

    @wraps(method)
    def call(self: Locked, *args: Any, **kwargs: Any) -> None:
        if self.is_inside:
            self._later.append(partial(method, self, *args, **kwargs))
            return
        with self._lock:
            self._run(partial(method, self, *args, **kwargs))

    return cast("F", call)


class _Last:
    """Calls a function at once, from its own finalizer."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call()
