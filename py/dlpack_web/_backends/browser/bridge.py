"""The bridge between Python and JavaScript: the only module that imports js or pyodide.

The JavaScript side is one object per Pyodide (PythonCalls in js/src/pyodide/calls.ts). A
page that called `connect(pyodide)` has passed it in; otherwise the copy in this wheel
is evaluated at the first use.

Tensors cross as integers, in one step: Python may be interrupted (KeyboardInterrupt)
between any two of its own steps, but not within one that runs in C.
"""

import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count
from typing import Any

from ... import _core
from .. import Arguments
from ..calls import Call, calling, warn

IN_BROWSER = sys.platform == "emscripten"
if IN_BROWSER:
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

    _VERSION = tuple(map(int, re.findall(r"\d+", pyodide.__version__)[:3]))
    # Whether code in the event loop can be interrupted while Python waits (pyodide#6421).
    _INTERRUPTED_WAITS = _VERSION >= (314, 0, 5)

_javascript: Any = None


def _attach(javascript: Any) -> None:
    """Called by JavaScript's `connect(pyodide)`."""
    global _javascript
    if _javascript is None:
        _javascript = javascript
        javascript.onFault(create_proxy(_warn))


def ready() -> Any:
    """The JavaScript side; BufferError if there is none."""
    if _javascript is None:
        _attach(_load())
    return _javascript


def _load() -> Any:
    if not IN_BROWSER:
        raise BufferError(
            "JavaScript is available only in Pyodide, in a browser; this is "
            f"{sys.implementation.name} on {sys.platform}"
        )
    from importlib.resources import files

    source = files("dlpack_web").joinpath("_bridge.js").read_text("utf-8")
    try:
        bundle = run_js(source + "\n__dlpackWeb")
    except JsException as error:
        if error.name != "EvalError":
            raise
        raise BufferError(
            "this page's Content-Security-Policy forbids eval, which `import "
            "dlpack_web` needs to load its JavaScript; let the page call "
            "`connect(pyodide)` of the npm package dlpack-web instead"
        ) from error
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
    message = message.replace("; convert: true converts", "; convert=True converts")
    return re.sub(
        r"requestDevice\(\{ (\w+): (\d+) \}\)", r"request_device(\1=\2)", message
    )


def _locate(made: Any, error: Any) -> None:
    """Adds the place of the call to the exception for a fault."""
    place = _place(_javascript.siteOf(error))
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


def _warn(message: str, number: int) -> None:
    """JavaScript calls this for a fault whose results nothing read."""
    warn(message, _place(number))


# --- the JavaScript side ----------------------------------------------------------------


def method(name: str) -> Any:
    """A method of the JavaScript side."""
    return getattr(ready(), name)


def call(name: str, *args: Any) -> Any:
    """Calls a method of the JavaScript side; its errors become Python's."""
    return invoke(method(name), *args)


def invoke(function: Any, *args: Any) -> Any:
    """Calls a function of the JavaScript side; its errors become Python's."""
    try:
        return function(*args)
    except JsException as error:
        raise _translated(error) from None


def pass_call(
    function: Any,
    given: tuple[Any, ...],
    number: int,
    counts: tuple[int, ...],
    args: Arguments,
) -> Any:
    """Calls a function of the JavaScript side, which finds the number, workgroups and
    arguments of a kernel's call in memory; its errors become Python's."""
    return invoke(_core._pass, function, given, number, counts, args)


def call_with(name: str, tensors: Sequence[_core.Tensor], *args: Any) -> Any:
    """`call` with the addresses of Tensors as first arguments."""
    return call(name, *map(id, tensors), *args)


def receive(function: Any, *args: Any) -> _core.Tensor:
    """The Tensor whose handle a function of the JavaScript side returns: called and
    taken over in one step, chained in C."""
    chain = map(_core._take, map(function, *zip(args)))
    tensor: _core.Tensor = invoke(next, chain)
    return tensor


async def receive_later(function: Any, *args: Any) -> _core.Tensor:
    """The same for a function that returns {promise, release}: the promise is of a
    JavaScript Tensor, and release() releases that, even before it is there."""
    kept = Kept(function, *args)
    try:
        return receive(method("fromJs"), await finish(kept.js.promise))
    finally:
        kept.js.release()


async def finish(promise: Awaitable[Any]) -> Any:
    """Awaits the result of `call`, with the same errors."""
    try:
        return await promise
    except JsException as error:
        raise _translated(error) from None


_works = count(1)


async def finish_work(begin: Callable[[int], Awaitable[Any]]) -> Any:
    """Awaits what the JavaScript side begins, which gets a number. If the wait ends
    otherwise, JavaScript gives it up."""
    work = next(_works)
    try:
        return await finish(begin(work))
    except BaseException:
        call("giveUp", work)
        raise


def js_list(values: Iterable[int | str]) -> Any:
    """A JavaScript array."""
    ready()
    return to_js(list(values))


def options(values: dict[str, Any]) -> Any:
    """A plain JavaScript object."""
    ready()
    return to_js(values, dict_converter=js.Object.fromEntries)


def js_bytes(data: bytes) -> Any:
    """A JavaScript Uint8Array with a copy of bytes."""
    ready()
    return to_js(data)


def has_webgpu() -> bool:
    """Whether the browser has WebGPU; requests no adapter."""
    return bool(getattr(getattr(js, "navigator", None), "gpu", None))


def memory_size() -> int:
    """Bytes of Python's memory: all its addresses are lower."""
    return int(pyodide_js._module.HEAPU8.length)


def read_file(path: str) -> Any:
    """The contents of a file, as a Uint8Array, so Python's own memory does not grow."""
    return pyodide_js.FS.readFile(path)


def give_once(given: list[Any], function: Callable[[], Any] | None) -> None:
    """Appends a function for JavaScript to call once, later; destroy() revokes it."""
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"release must be a function, not {function!r}")
    ready()
    # One step, so an interrupt cannot lose what was made.
    given.extend(map(create_once_callable, [function]))


def is_js(x: object) -> bool:
    """Whether `x` is a JavaScript object."""
    return IN_BROWSER and isinstance(x, JsProxy)


def is_loaded() -> bool:
    """Whether the JavaScript side is loaded."""
    return _javascript is not None


def can_block() -> bool:
    """Whether Python may wait for a promise here (JavaScript Promise Integration)."""
    return IN_BROWSER and bool(can_run_sync())


def hold_interrupts() -> None:
    """Holds interrupts until Python waits, or returns to JavaScript."""
    method("holdInterruptsToWait")()


def block_on(awaitable: Awaitable[Any]) -> Any:
    """Waits for a promise that `call` returned, or for a coroutine, with the same
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
    hold, let = method("holdInterrupts"), method("letInterrupts")
    hold()
    try:
        return invoke(run_sync, awaitable)
    finally:
        let()


def wait_for(begin: Any, *args: Any) -> None:
    """Waits for the promise whose number `begin(*args)` returns, with JavaScript's
    errors; only if `can_block()`. One step, chained in C: no interrupt comes between,
    and it costs a fraction of run_sync(), which makes a task and a proxy of the
    promise."""
    invoke(next, map(_core._wait, map(begin, *zip(args))))


def receive_waiting(begin: Any, *args: Any) -> _core.Tensor:
    """The same, for the Tensor that comes with the promise."""
    chain = map(_core._take, map(_core._wait, map(begin, *zip(args))))
    tensor: _core.Tensor = invoke(next, chain)
    return tensor


class Kept:
    """An object made by the JavaScript side; released when this is collected."""

    def __init__(self, function: Any, *args: Any) -> None:
        self._made: list[Any] = []
        # One step, so an interrupt cannot lose what was made.
        invoke(self._made.extend, map(function, *zip(args)))

    @property
    def js(self) -> Any:
        return self._made[0]

    def __del__(self) -> None:
        for twin in self.__dict__.get("_made", ()):  # nothing if __init__ raised
            twin.release()
