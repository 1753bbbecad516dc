"""Explains, or works around, why an object cannot be shared as it is."""

from collections.abc import Mapping
from typing import Any

from .. import _core
from .._layout.text import is_awaitable, type_of
from .arrays import adopt_array, named_dtype

_KINDS = {
    "O": "object arrays hold references to Python objects, not numbers; convert them, "
    "for example with x.astype('float64')",
    "S": "DLPack has no dtype for byte strings; share their bytes with x.view('uint8')",
    "U": "DLPack has no dtype for strings; share their code points with "
    "x.view('uint32')",
    "T": "DLPack has no dtype for strings; encode them to numbers first",
    "M": "DLPack has no dtype for times; share their counts with x.view('int64')",
    "m": "DLPack has no dtype for time spans; share their counts with x.view('int64')",
    "V": "DLPack has no structured or void dtypes; share a field, x['name'], or the "
    "bytes, x.view('uint8')",
}


def explain(
    x: object, error: BaseException, borrowing: bool, copied: bool
) -> "BaseException | _core.Tensor":
    """The exception to raise for `error`, which importing `x` raised; or a Tensor over
    x.

    error: a BufferError, TypeError, ValueError or AttributeError; others do not come
    here. NumPy exports only its own dtypes, and before 2.1 no read-only arrays: both
    are imported here, and our own BufferError replaces NumPy's for dtypes that DLPack
    lacks. An exception of another producer's `__dlpack__` is kept and gets a note. With
    `borrowing`, through the buffer protocol or for JavaScript, our own BufferError
    replaces it. `copied`: what this returns may be a copy, as it will be copied.
    """
    lost = isinstance(error, AttributeError)  # x has no __dlpack__
    if not hasattr(x, "__dlpack__") and (lost or not _is_buffer(x)):
        return _not_a_producer(x, error)
    if lost:
        return error
    try:
        tensor = adopt_array(x, copied, borrowing)
    except BufferError as misaligned:
        return _in_place_of(error, misaligned)
    if tensor is None and not borrowing:
        tensor = _read_only(x, error)
    if tensor is not None:
        return tensor
    hint = _hint(x)
    is_array = any(kind.__module__ == "numpy" for kind in type(x).__mro__)
    if not (borrowing or (hint and is_array)):
        if hint is not None:
            error.add_note(hint)
        return error
    if hint is None and isinstance(error, BufferError | TypeError):
        return error
    return _in_place_of(
        error, BufferError(hint or f"cannot share {type(x).__qualname__!r}: {error}")
    )


def _in_place_of(error: BaseException, better: Exception) -> Exception:
    """`better`, which says all that `error` did: tracebacks show only `better`."""
    better.__context__ = error
    better.__suppress_context__ = True
    return better


def _is_buffer(x: object) -> bool:
    return hasattr(type(x), "__buffer__")


def _read_only(x: Any, error: BaseException) -> _core.Tensor | None:
    """A Tensor over an ndarray that NumPy before 2.1 did not export because it is
    read-only, from its buffer; None for other objects, and other refusals."""
    if "readonly array" not in str(error) or not _is_buffer(x):
        return None
    try:
        return _core.from_buffer(x)
    except (BufferError, TypeError, ValueError):
        return None


def _not_a_producer(x: Any, error: BaseException) -> Exception:
    """The error for an object without __dlpack__, or a buffer in its place."""
    lacks = "no __dlpack__" if _is_buffer(x) else "neither __dlpack__ nor a buffer"
    given = type_of(x).removesuffix(" (await it)")  # which the way says
    what = f"cannot share {given}, which has {lacks}: {_way(x)}"
    wanted = AttributeError if isinstance(error, AttributeError) else TypeError
    return _in_place_of(error, wanted(what))


def _way(x: Any) -> str:
    """How to make something of it that can be shared."""
    kind = type(x)
    if kind.__module__.startswith("pyodide."):  # a JsProxy
        return "it is a JavaScript object: use from_js(x)"
    if _is_buffer(x):
        return "it is a buffer: use from_buffer(x)"
    if is_awaitable(x):
        return "its elements are not read yet: use `await x`"
    if isinstance(x, str):
        return "share its bytes with from_buffer(x.encode())"
    if isinstance(x, Mapping):
        return "share each of its values"
    if hasattr(kind, "toarray"):  # scipy.sparse
        return "it is not a dense array: use x.toarray()"
    if hasattr(kind, "__array__"):
        return "it has __array__: use np.asarray(x)"
    return "make an array of it first, for example with np.asarray(x)"


def _hint(x: object) -> str | None:
    dtype = getattr(x, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if not isinstance(kind, str):
        return None
    name = f"cannot share dtype {str(dtype)!r}: "
    extension = kind == "V" and getattr(dtype, "isbuiltin", 0) == 2  # of ml_dtypes
    if kind in _KINDS and not extension:
        return name + _KINDS[kind]
    if kind in "fc" and getattr(dtype, "itemsize", 0) > (8 if kind == "f" else 16):
        return (
            name + "DLPack's widest floats have 64 bits; use x.astype('float64' or "
            "'complex128')"
        )
    if getattr(dtype, "isnative", True) is False:
        return name + (
            "DLPack is native-endian; use x.astype(x.dtype.newbyteorder('='))"
        )
    if extension and named_dtype(dtype) is None:
        return name + "DLPack has no such dtype; share its bytes with x.view('uint8')"
    return None
