"""What operations are tried on while memory runs out, and calls in which it does."""

import ctypes
from collections.abc import Callable, Coroutine
from ctypes import c_size_t, c_void_p, cast, py_object, pythonapi
from typing import Any

import bridge_calls as bridge
import ml_dtypes
import numpy as np
from forge import DESTRUCTOR, Forged, Versioned, new_capsule
from producers import HOSTILE
from world import API, Hostile, clear_pending, must

import dlpack_web as dlw
from dlpack_web import _core

# --- faults.c -----------------------------------------------------------------------------

FAULTS = ctypes.PyDLL(_core.__file__)
faulty_call = FAULTS.dlw_faults_call
faulty_call.restype = py_object
faulty_call.argtypes = (py_object, ctypes.c_long, ctypes.c_int)
faulty_bridge = FAULTS.dlw_faults_bridge
faulty_bridge.restype = c_size_t
faulty_bridge.argtypes = (
    c_void_p,
    c_void_p,
    ctypes.c_double,
    ctypes.c_long,
    ctypes.c_int,
)
failures = FAULTS.dlw_faults_failures
failures.restype = ctypes.c_long
blocks = FAULTS.dlw_faults_blocks
blocks.restype = ctypes.c_long

GOOD, ANYWHERE = 1, 2
OUT_OF_MEMORY = (MemoryError, NotImplementedError, SystemError, ctypes.ArgumentError)

# --- producers and tensors ------------------------------------------------------------------

FLOATS = np.arange(6.0).reshape(2, 3)
SMALL = np.arange(6, dtype=np.int64)
BFLOATS = np.ones((2, 2), ml_dtypes.bfloat16)
NIBBLES = np.ones(3, ml_dtypes.int4)
STRINGS = np.array(["a", "b"])


class Ready:
    """A producer as in C, which needs no memory for its capsule and its deleter."""

    def __init__(self, **fields: Any) -> None:
        self.forged = Forged(**fields)  # as long as somebody needs it: see `settle`
        self.deleted = ctypes.c_int64()
        managed = self.forged.managed
        managed.manager_ctx = ctypes.addressof(self.deleted)
        managed.deleter = ctypes.cast(HOSTILE.delete_counting, c_void_p)
        destructor = ctypes.cast(HOSTILE.destroy_counting, DESTRUCTOR)
        self.capsule: Any = new_capsule(
            ctypes.addressof(managed), b"dltensor_versioned", destructor
        )
        READY.append(self)

    def __dlpack__(self, **keywords: object) -> object:
        return self.capsule


READY: list[Ready] = []


def settle() -> None:
    """Once nothing holds their tensors: each was deleted once."""
    for each in READY:
        each.capsule = None
        must(each.deleted.value == 1, "deleted", each.deleted.value, "times")
    READY.clear()


class Exporter:
    def __init__(self) -> None:
        self.memory = bytearray(b"abc")

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.memory)

    def __release_buffer__(self, view: memoryview) -> None:
        view.release()


class Old:
    def __dlpack__(self) -> object:
        return FLOATS.__dlpack__()


class Refuses:
    def __dlpack__(self, **keywords: object) -> object:
        raise Hostile


class Owner(bytearray):
    pass


def tensor(x: Any = FLOATS) -> dlw.Tensor:
    return dlw.from_dlpack(x)


def packed() -> dlw.Tensor:
    made = dlw.empty(5, "uint4")
    made.write(dlw.from_dlpack(struct_of_nibbles()))
    return made


def struct_of_nibbles() -> Ready:
    return Ready(code=1, bits=4, shape=(5,), strides=(1,), ndim=1)


def on_gpu() -> dlw.Tensor:
    made = Ready(device_type=15, data=0x1234)
    return dlw.from_dlpack(made)


# --- the functions for JavaScript and for C, with exceptions --------------------------------


def handle_of(address: int) -> int:
    if address == 0:
        _core._raise()
        raise AssertionError("it failed and kept no exception")
    return bridge.struct_of(address)[1]


class Lent:
    """A hold that JavaScript has; given back when this dies."""

    def __init__(self, x: Any) -> None:
        self.handle = handle_of(bridge.borrow(x, 0))

    def __del__(self) -> None:
        bridge.release(self.handle)


class Bridged:
    """A call of a function for JavaScript, in which alone memory runs out: the tensor whose
    handle it gives. `number` is the last argument of some."""

    def __init__(
        self, name: str, *args: Callable[[Any], int], number: float = 0
    ) -> None:
        self.number = number
        self.function = ctypes.cast(getattr(FAULTS, f"dlw_bridge_{name}"), c_void_p)
        self.args = args

    def __call__(self, subject: Any, n: int, how: int) -> Any:
        given = [each(subject) for each in self.args]
        args = (ctypes.c_ssize_t * 6)(*given)
        address = faulty_bridge(self.function, args, self.number, n, how)
        if address:
            return _core._take(handle_of(address))
        kind = bridge.error_kind()
        error = clear_pending()
        must((kind == 6) == (error is MemoryError), "kind", kind, "for", error)
        if error is MemoryError:
            raise MemoryError
        return str(error)


def chunk(lent: Lent, dtype: str) -> bytes:
    count = bridge.chunk(lent.handle, dlw.DType(dtype)._packed, 0)
    if count == 0:
        _core._raise()
    return bridge.read_scratch(count * dlw.DType(dtype).itemsize)


def error_text() -> bool:
    """Whether it is what it must be: words, or none where there is no memory for them."""
    bridge.borrow(STRINGS, 0)
    text: bytes = bridge.error_text()
    words = b"" if bridge.error_kind() == 6 else b"DLPack has no dtype for strings"
    return text == b"" or words in text


class Exchanged:
    """A tensor out and in by the functions for C; memory runs out in one of the two."""

    def __init__(self, which: str) -> None:
        self.which = which

    def __call__(self, subject: Any, n: int, how: int) -> Any:
        managed, made = c_void_p(), c_void_p()
        out = API.from_object, id(subject), ctypes.addressof(managed)
        self._run(*out, *((n, how) if self.which == "out" else (0, 0)))
        struct = Versioned.from_address(managed.value or 0)
        into = API.to_object, managed.value, ctypes.addressof(made)
        try:
            self._run(*into, *((n, how) if self.which == "in" else (0, 0)))
        except MemoryError:
            ctypes.PYFUNCTYPE(None, c_void_p)(struct.deleter)(managed)
            raise
        result = cast(made, py_object).value
        pythonapi.Py_DecRef(py_object(result))
        return result

    def _run(self, function: Any, source: Any, target: int, n: int, how: int) -> None:
        args = (ctypes.c_ssize_t * 6)(source, target)
        faulty_bridge(ctypes.cast(function, c_void_p), args, 0, n, how)


# --- what comes of it -----------------------------------------------------------------------


def refused(call: Callable[[Any], Any], x: Any) -> str:
    """What the exception says, whichever it is."""
    try:
        call(x)
    except OUT_OF_MEMORY:
        raise
    except (Exception, Hostile) as error:  # noqa: BLE001 - whichever it is
        return f"{type(error).__name__}: {error}"
    raise AssertionError("it was not refused")


def awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What comes of one that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def capsule(made: Any) -> str:
    return str(made).split(" at ")[0]


def facts(result: Any) -> Any:
    """What can be compared of a result."""
    if isinstance(result, dlw.Tensor):
        host = result.device.is_host and result.dtype == result.dtype
        return repr(result), result.tobytes() if host else None
    if isinstance(result, np.ndarray):
        return result.shape, str(result.dtype), result.tobytes()
    if isinstance(result, list | tuple):
        return [facts(each) for each in result]
    return result
