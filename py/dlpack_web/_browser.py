"""The seam between Python and the browser: the only file that imports js or pyodide.

The JavaScript side is one object per Pyodide (PythonSeam in js/src/pyodide/seam.ts). A page
that called `connect(pyodide)` has handed it over; otherwise the copy in this wheel is
evaluated when it is first needed.

Tensors cross as integers, in one step: Python may be interrupted (KeyboardInterrupt)
between any two steps of its own, but not within one that runs in C.
"""

import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from types import CodeType
from typing import Any

from . import _core

IN_BROWSER = sys.platform == "emscripten"
if IN_BROWSER:
    import js
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

_seam: Any = None


def _attach(seam: Any) -> None:
    """Called by JavaScript's `connect(pyodide)`."""
    global _seam
    if _seam is None:
        _seam = seam
        seam.onFault(create_proxy(_warn))


def _ready() -> Any:
    """The JavaScript side; BufferError where there is none."""
    if _seam is None:
        _attach(_load())
    return _seam


def _load() -> Any:
    if not IN_BROWSER:
        raise BufferError(
            "JavaScript and WebGPU need a browser, through Pyodide; this is "
            f"{sys.implementation.name} on {sys.platform}, where CPU tensors work"
        )
    from importlib.resources import files

    source = files(__package__).joinpath("_bridge.js").read_text("utf-8")
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
    """The Python exception for an error that our JavaScript threw."""
    if getattr(getattr(error, "cause", None), "type", None) == "MemoryError":
        return MemoryError(error.message)
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
    made = classes.get(error.name, RuntimeError)(error.message)
    if error.name in ("KernelError", "DeviceError"):
        _locate(made, error)
    return made


def _locate(made: Any, error: Any) -> None:
    """Adds to the exception for a fault where its call was."""
    place = _place(_seam.siteOf(error))
    if place is not None:
        made.args = (f"{made}\ncalled at {place[0]}:{place[1]}",)
    if isinstance(made, _core.KernelError):
        made.label, made.line = error.label, getattr(error, "line", None)
        made.filename, made.lineno = place or (None, None)


# --- calls, which faults are traced back to ---------------------------------------------

_CALLS = 1 << 12  # that are remembered
_calls: dict[int, tuple[int, CodeType, int]] = {}
_numbers = count(1)


def site() -> int:
    """A number for the call of ours that is running, by which a fault is found to be its."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__package__") == __package__ and frame.f_back:
        frame = frame.f_back
    number = next(_numbers)
    _calls[number % _CALLS] = number, frame.f_code, frame.f_lasti
    return number


def _place(number: int) -> tuple[str, int | None] | None:
    """File and line of a call; None if it is not remembered any more."""
    found, code, at = _calls.get(number % _CALLS, (0, None, 0))
    if code is None or found != number:
        return None
    lines = (line for start, end, line in code.co_lines() if start <= at < end)
    return code.co_filename, next(lines, None)


def _warn(message: str, number: int) -> None:
    """Told of a fault that nobody read the results of."""
    filename, line = _place(number) or ("<unknown>", 0)
    warnings.warn_explicit(message, RuntimeWarning, filename, line or 0)


def method(name: str) -> Any:
    """A method of the JavaScript side."""
    return getattr(_ready(), name)


def call(name: str, *args: Any) -> Any:
    """Calls a method of the JavaScript side; its errors become Python's."""
    return invoke(method(name), *args)


def invoke(function: Any, *args: Any) -> Any:
    """Calls a function of the JavaScript side; its errors become Python's."""
    try:
        return function(*args)
    except JsException as error:
        raise _translated(error) from None


def call_with(name: str, tensors: Sequence[_core.Tensor], *args: Any) -> Any:
    """`call` with the addresses of Tensors as first arguments."""
    return call(name, *map(id, tensors), *args)


def receive(function: Any, *args: Any) -> _core.Tensor:
    """The Tensor that a function of the JavaScript side returns the handle of: called
    and taken over in one step, chained in C."""
    chain = map(_core._take, map(function, *([arg] for arg in args)))
    tensor: _core.Tensor = invoke(next, chain)
    return tensor


async def receive_later(function: Any, *args: Any) -> _core.Tensor:
    """The same of a function that returns {promise, release}: the promise is of a
    JavaScript Tensor, and release() lets go of that, even before it is there."""
    kept = Kept(function, *args)
    return receive(method("fromJs"), await finish(kept.js.promise))


async def finish(promise: Awaitable[Any]) -> Any:
    """Awaits what `call` returned, with the same errors."""
    try:
        return await promise
    except JsException as error:
        raise _translated(error) from None


def numbers(values: Sequence[int]) -> Any:
    """A JavaScript array of numbers."""
    _ready()
    return to_js(list(values))


def options(values: dict[str, Any]) -> Any:
    """A plain JavaScript object."""
    _ready()
    return to_js(values, dict_converter=js.Object.fromEntries)


@contextmanager
def given_once(function: Callable[[], Any] | None) -> Iterator[Any]:
    """A function for JavaScript to call once, later; taken back if the block fails."""
    if function is None:
        yield None
        return
    if not callable(function):
        raise TypeError(f"release must be a function, not {function!r}")
    _ready()
    given = create_once_callable(function)
    try:
        yield given
    except BaseException:
        given.destroy()
        raise


def is_js(x: object) -> bool:
    """Whether `x` is an object of JavaScript."""
    return IN_BROWSER and isinstance(x, JsProxy)


def is_loaded() -> bool:
    """Whether the JavaScript side is there already."""
    return _seam is not None


def stats() -> list[dict[str, Any]]:
    """What each registered device holds and has done: webgpu.stats()."""
    rows: list[dict[str, Any]] = call("stats").to_py()
    for row in rows:
        row["lost"] = row["lost"] or None  # some Pyodides have a null of their own
    return rows


def features() -> dict[str, Any]:
    """What this host can do, and what it lacks.

    browser: whether there is one. The others are those of JavaScript's features():
    webgpu (available; reason, or adapter and maxBufferSize in bytes), shaderF16,
    timestampQuery, jspi, float16Array, using, unsafeEval, isolated, worker. Where Python
    cannot wait (no JSPI), no adapter is asked for: then `webgpu.request_device()` tells.
    canBlock: whether it can wait here and now.

    >>> dlw.features()["webgpu"]["available"]
    True
    """
    if not IN_BROWSER:
        reason = f"this is {sys.implementation.name} on {sys.platform}, not a browser"
        return {"browser": False, "webgpu": {"available": False, "reason": reason}}
    seam = _ready()
    blocking = can_block()
    js_found = block_on(seam.features()) if blocking else seam.featuresAtOnce()
    found: dict[str, Any] = js_found.to_py()
    return {"browser": True, "canBlock": blocking} | found


def can_block() -> bool:
    """Whether Python may wait for a promise here (JavaScript Promise Integration)."""
    return IN_BROWSER and bool(can_run_sync())


def block_on(promise: Awaitable[Any]) -> Any:
    """Waits for what `call` returned, with the same errors; only where `can_block()`."""
    return invoke(run_sync, promise)


class Kept:
    """What a function of the JavaScript side made; released together with this."""

    def __init__(self, function: Any, *args: Any) -> None:
        self._made: list[Any] = []
        # One step, so that nothing is made without being kept.
        invoke(self._made.extend, map(function, *([arg] for arg in args)))

    @property
    def js(self) -> Any:
        return self._made[0]

    def __del__(self) -> None:
        for twin in self.__dict__.get("_made", ()):  # nothing where __init__ raised
            twin.release()
