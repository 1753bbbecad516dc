"""The bridge between Python and JavaScript, for the whole package.

The JavaScript side is one object per Pyodide (PythonCalls in js/src/pyodide/calls.ts). A
page that called `connect(pyodide)` has passed it in; otherwise the copy in this wheel
is evaluated at the first use.

Tensors cross as integers, in one step: Python may be interrupted (KeyboardInterrupt)
between any two of its own steps, but not within one that runs in C.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import js
import pyodide
import pyodide_js
from pyodide.code import run_js
from pyodide.ffi import (
    JsException,
    JsProxy,
    can_run_sync,
    create_once_callable,
    create_proxy,
    run_sync,
    to_js,
)

from ... import _core
from ..._layout.text import IN_PYTHON
from ..calls import Call, calling, warn
from ..checks import Arguments, Counts

_VERSION = tuple(map(int, re.findall(r"\d+", pyodide.__version__)[:3]))
# Whether code in the event loop can be interrupted while Python waits (pyodide#6421).
_INTERRUPTED_WAITS = _VERSION >= (314, 0, 5)

if TYPE_CHECKING:
    from .calls import Calls


_javascript: Any = None


def _attach(javascript: Any) -> None:
    """Called by JavaScript's `connect(pyodide)`."""
    global _javascript
    if _javascript is None:
        # A proxy of each subject, for all calls.
        _javascript = SimpleNamespace(**dict(js.Object.entries(javascript)))
        # For a fault whose results nothing read.
        report = create_proxy(lambda message, number: warn(message, _place(number)))
        _javascript.devices.onFault(report)


def calls() -> "Calls":
    """JavaScript's functions for Python, by subject; BufferError: there are none."""
    if _javascript is None:
        _attach(_load())
    found: Calls = _javascript
    return found


def _evaluated(package: str, file: str, end: str, way: str) -> Any:
    from importlib.resources import files

    source = files(package).joinpath(file).read_text("utf-8")
    try:
        return run_js(source + end)
    except JsException as error:
        if error.name != "EvalError":
            raise
        raise BufferError(
            f"this page's Content-Security-Policy forbids eval, which `import {package}` "
            f"needs to load its JavaScript; let the page call {way} instead"
        ) from error


_of_packages: dict[str, Any] = {}


async def calls_of(package: str) -> Any:
    """What Python calls of a package's JavaScript.

    Parameters
    ----------
    package : str
        The module that has it as `_script.js`, a function of the names of
        `dlpack-web/internal`. It is evaluated once, unless the page gave it to `connect()`.

    Returns
    -------
    JsProxy
        An object of the class that the function returned.

    Raises
    ------
    BufferError
        The page forbids eval, and has not called `connect()` with the package.
    """
    if package not in _of_packages:
        packages, script = calls().packages, None
        if not packages.has(package):
            npm = package.replace("_", "-")
            way = f"`connect(pyodide, {{ packages }})` with that of `{npm}/pyodide`"
            script = _evaluated(package, "_script.js", "", way)
        _of_packages[package] = await finish(invoke(packages.add, package, script))
    return _of_packages[package]


def _load() -> Any:
    way = "`connect(pyodide)` of the npm package dlpack-web"
    bundle = _evaluated("dlpack_web", "_bridge.js", "\n__dlpackWeb", way)
    try:
        return bundle.attach(pyodide_js)
    except JsException as error:
        raise _translated(error) from None


def _translated(error: Any) -> BaseException:
    """The Python exception for an error thrown by our JavaScript."""
    if getattr(getattr(error, "cause", None), "type", None) == "MemoryError":
        return MemoryError(error.message)
    if getattr(error, "type", None) == "KeyboardInterrupt":
        return KeyboardInterrupt()  # in a Python function that JavaScript called
    classes: dict[str, type[Exception]] = {
        "ReleasedError": _core.ReleasedError,
        "CopyError": _core.CopyError,
        "DeviceLostError": _core.DeviceLostError,
        "KernelError": _core.KernelError,
        "DeviceError": BufferError,
        "UnsupportedError": BufferError,
        "DLPackError": BufferError,
        "TypeError": TypeError,
        "RangeError": ValueError,
    }
    made = classes.get(error.name, RuntimeError)(_in_python(error.message))
    if error.name in ("KernelError", "DeviceError"):
        _locate(made, error)
    return made


def _in_python(message: str) -> str:
    """Replaces JavaScript's names in a message by Python's."""
    for javascript, python in IN_PYTHON.items():
        message = re.sub(javascript, python, message)
    return message


def _locate(made: Any, error: Any) -> None:
    """Adds the place of the call to the exception for a fault."""
    place = _place(_javascript.devices.siteOf(error))
    if place is not None:
        made.args = (f"{made}\ncalled at {place.filename}:{place.lineno}",)
    if isinstance(made, _core.KernelError):
        made.label, made.line = error.label, getattr(error, "line", None)
        made.filename = place and place.filename
        made.lineno = place and place.lineno


# --- calls, to locate faults --------------------------------------------------------------

_CALLS = 1 << 12  # the latest ones are kept
_calls: dict[int, tuple[int, Call]] = {}
_kept: dict[int, Call] = {}  # those of batches
_numbers = count(1)


def site(inside: int = 1) -> int:
    """A number for the current call, to locate its faults. inside: how many of our
    functions it is called in, at least."""
    number = next(_numbers)
    _calls[number % _CALLS] = number, calling(inside + 1)
    return number


def keep_sites(numbers: Iterable[int], keep: bool) -> None:
    """Keeps calls that were numbered just now, however many come after; or no more."""
    for number in numbers:
        call = _place(number) if keep else _kept.pop(number, None)
        if keep and call is not None:
            _kept[number] = call


def _place(number: int) -> Call | None:
    """The place of a call; None if it is no longer kept."""
    found, call = _calls.get(number % _CALLS, (0, None))
    return call if found == number else _kept.get(number)


# --- the JavaScript side ----------------------------------------------------------------


def invoke[*Ts, R](function: Callable[[*Ts], R], /, *args: *Ts) -> R:
    """Calls a function of the JavaScript side; its errors become Python's."""
    try:
        return function(*args)
    except JsException as error:
        raise _translated(error) from None


def invoke_with[*Ts, R](
    number: int,
    counts: Counts,
    arguments: Arguments,
    function: Callable[[*Ts], R],
    /,
    *args: *Ts,
) -> R:
    """The same for a function that finds a call of a kernel in memory."""
    found: R = invoke(_core._pass, function, args, number, counts, arguments)
    return found


def receive[*Ts](function: Callable[[*Ts], int], /, *args: *Ts) -> _core.Tensor:
    """The Tensor whose handle a function of the JavaScript side returns: called and
    taken over in one step, chained in C."""
    return invoke(next, map(_core._take, _results(function, args)))


def _results(function: Any, args: Any) -> Iterator[Any]:
    """The result of a call, when it is asked for."""
    return map(function, *zip(args))


async def finish[R](promise: Awaitable[R]) -> R:
    """Awaits a promise of `invoke`, with the same errors."""
    try:
        return await promise
    except JsException as error:
        raise _translated(error) from None


_works = count(1)


async def finish_work[R](begin: Callable[[int], Awaitable[R]]) -> R:
    """Awaits what the JavaScript side begins, which gets a number. If the wait ends
    otherwise, JavaScript gives it up."""
    work = next(_works)
    try:
        return await finish(begin(work))
    except BaseException as error:
        # A task can be cancelled when the work has failed already: it does not see that error.
        invoke(calls().waits.giveUp, work, isinstance(error, Exception))
        raise


def js_list(values: Iterable[Any]) -> Any:
    """A JavaScript array, of arrays for tuples."""
    calls()
    return to_js(list(values))


def options(values: dict[str, Any]) -> Any:
    """A plain JavaScript object."""
    calls()
    return to_js(values, dict_converter=js.Object.fromEntries)


def give_once(given: list[Any], function: Callable[[], Any] | None) -> None:
    """Appends a function for JavaScript to call once, later; destroy() revokes it."""
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"release must be a function, not {function!r}")
    calls()
    # One step, so an interrupt cannot lose what was made.
    given.extend(map(create_once_callable, [function]))


#: A JavaScript function for a Python one; destroy() revokes it.
callback = create_proxy


def is_js(x: object) -> bool:
    """Whether `x` is a JavaScript object."""
    return isinstance(x, JsProxy)


def is_loaded() -> bool:
    return _javascript is not None


def can_block() -> bool:
    """Whether Python may wait for a promise here (JavaScript Promise Integration)."""
    return bool(can_run_sync())


def hold_interrupts() -> None:
    """Holds interrupts until Python waits, or returns to JavaScript."""
    calls().waits.holdInterruptsToWait()


def block_on(awaitable: Awaitable[Any]) -> Any:
    """Waits for a promise that `invoke` returned, or for a coroutine, with the same
    errors; only if `can_block()`.

    run_sync() makes a task of either. Pyodide does not check that asyncio made it, so
    interrupts are held until Python waits. If an interrupt hits before a step of the
    task begins, the event loop loses that step and the wait would not end. Up to
    Pyodide 314.0.4 no interrupt arrives while Python waits; in later versions it is
    held until the wait ends.
    """
    if not _INTERRUPTED_WAITS:
        hold_interrupts()
        return invoke(run_sync, awaitable)
    waits = calls().waits
    hold, let = waits.holdInterrupts, waits.letInterrupts
    hold()
    try:
        return invoke(run_sync, awaitable)
    finally:
        let()


def wait_for[*Ts](begin: Callable[[*Ts], int], /, *args: *Ts) -> None:
    """Waits for the promise whose number `begin(*args)` returns, with JavaScript's
    errors; only if `can_block()`. One step, chained in C: no interrupt comes between,
    and it costs a fraction of run_sync(), which makes a task and a proxy of the
    promise."""
    invoke(next, map(_core._wait, _results(begin, args)))


def receive_waiting[*Ts](begin: Callable[[*Ts], int], /, *args: *Ts) -> _core.Tensor:
    """The same, for the Tensor that comes with the promise."""
    chain = map(_core._take, map(_core._wait, _results(begin, args)))
    return invoke(next, chain)


class Kept[T]:
    """An object made by the JavaScript side; released when this is collected."""

    def __init__[*Ts](self, function: Callable[[*Ts], T], /, *args: *Ts) -> None:
        self._made: list[Any] = []
        # One step, so an interrupt cannot lose what was made.
        invoke(self._made.extend, _results(function, args))

    @property
    def js(self) -> T:
        found: T = self._made[0]
        return found

    def __del__(self) -> None:
        for twin in self.__dict__.get("_made", ()):  # nothing if __init__ raised
            twin.release()
