"""Operators and names that people try on a Tensor or in the package, and that do not
exist: each raises an error that says what to do instead.

A Tensor shares memory; it computes nothing.
"""

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from .._layout import INSTEAD

_ARRAY = "np.asarray(t), which shares its memory"
_ON_GPU = (
    "`await t.to_host()`, which is an array, or on the GPU dlw.webgpu.ElementwiseKernel or, "
    "with gradients, tinygrad"
)
_SCALARS = (bool, int, float, complex)


def _array_of(tensor: Any) -> str:
    """What to compute with instead of a tensor, or of the class (None)."""
    return _ARRAY if _is_host(tensor) else _ON_GPU


def _is_host(tensor: Any) -> bool:
    return tensor is None or tensor.released or tensor.device.is_host


def _refuse_operator(symbol: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *_: object) -> NoReturn:
        raise TypeError(f"Tensor does not support {symbol}: use {_array_of(self)}")

    return refuse


class _Missing:
    """A name that only raises what to use instead; `hasattr` is false. Each is its own
    descriptor in the class: a `__getattr__` would slow down all attributes, including
    those that NumPy reads to make an array of a Tensor.
    """

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint

    def __get__(self, tensor: object, kind: type) -> NoReturn:
        array = "np.asarray(t)" if _is_host(tensor) else "(await t.to_host())"
        names = {"way": _array_of(tensor), "array": f"{array}.{self._name}"}
        hint = self._hint.format_map(names)
        message = f"{kind.__name__!r} object has no attribute {self._name!r}: {hint}"
        raise AttributeError(message, name=self._name, obj=tensor)


_MISSING = {name: hint for hint, names in INSTEAD.items() for name in names.split()}


def _refuse_before_await(self: "Reading[Any]", *_: object, **__: object) -> NoReturn:
    raise TypeError(f"{self._state} yet: use `await {self._call}`")


class Hints:
    """A base of Tensor: names and operators that raise what to use instead."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers find these mistakes themselves
        __add__ = __radd__ = __iadd__ = _refuse_operator("+")
        __sub__ = __rsub__ = __isub__ = _refuse_operator("-")
        __mul__ = __rmul__ = __imul__ = _refuse_operator("*")
        __truediv__ = __rtruediv__ = __itruediv__ = _refuse_operator("/")
        __floordiv__ = __rfloordiv__ = __ifloordiv__ = _refuse_operator("//")
        __mod__ = __rmod__ = __imod__ = _refuse_operator("%")
        __pow__ = __rpow__ = __ipow__ = _refuse_operator("**")
        __matmul__ = __rmatmul__ = __imatmul__ = _refuse_operator("@")
        __and__ = __rand__ = __iand__ = _refuse_operator("&")
        __or__ = __ror__ = __ior__ = _refuse_operator("|")
        __xor__ = __rxor__ = __ixor__ = _refuse_operator("^")
        __lshift__ = __rlshift__ = __ilshift__ = _refuse_operator("<<")
        __rshift__ = __rrshift__ = __irshift__ = _refuse_operator(">>")
        __divmod__ = __rdivmod__ = _refuse_operator("divmod()")
        __neg__ = _refuse_operator("-")
        __pos__ = _refuse_operator("+")
        __invert__ = _refuse_operator("~")
        __abs__ = _refuse_operator("abs()")
        __round__ = _refuse_operator("round()")
        __lt__ = _refuse_operator("<")
        __le__ = _refuse_operator("<=")
        __gt__ = _refuse_operator(">")
        __ge__ = _refuse_operator(">=")
        __contains__ = _refuse_operator("in")

        def __hash__(self) -> int:
            """For a Tensor of shape (), the hash of its number: sets and tables that
            libraries make of the elements must find it. Others have none, like
            ndarrays."""
            if self.shape:
                raise TypeError(
                    "a Tensor is not hashable, since its elements may change: use id(t) for "
                    "the Tensor, or t.numpy().tolist() for the elements"
                )
            return hash(self._number())

        def __eq__(self, other: object) -> bool:
            if self is other:
                return True
            ours = isinstance(other, Hints)
            if not self.shape and (
                type(other) in _SCALARS or (ours and not other.shape)
            ):
                return self._number() == (other._number() if ours else other)
            # With these, objects with __array_ufunc__ (NumPy, pandas, ...) compare the
            # elements; others would return False.
            alone = hasattr(other, "__dlpack__") and not hasattr(
                other, "__array_ufunc__"
            )
            if alone or type(other) in (*_SCALARS, list, tuple):
                raise TypeError(
                    f"Tensor does not support ==: use {_array_of(self)}; `t is u` "
                    "compares identity"
                )
            return NotImplemented

        def __dir__(self) -> list[str]:
            return [name for name in super().__dir__() if name not in _MISSING]

        def __setitem__(self, key: object, value: object) -> NoReturn:
            raise TypeError(
                "Tensor does not support item assignment: use t.write(x), t[...].write(x) "
                "or, on the CPU, np.asarray(t)"
            )

        def __delitem__(self, key: object) -> NoReturn:
            raise TypeError("Tensor does not support item deletion: use t[...], a view")

        def __reduce_ex__(self, protocol: object) -> NoReturn:
            raise TypeError(
                "a Tensor references memory and cannot be pickled or copied: use "
                "t.numpy(), or dlw.from_dlpack(t, copy=True)"
            )


for _name, _hint in _MISSING.items():
    setattr(Hints, _name, _Missing(_name, _hint))


class Reading[T](Coroutine[Any, Any, T]):
    """The result of `to_host()`, `open()` and `save()`: await it, like any coroutine.
    Using it as the array or file raises an error."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        state: str = "the elements are not read",
        call: str = "t.to_host()",
    ) -> None:
        self._coroutine, self._state, self._call = coroutine, state, call
        # A task calls the coroutine's own: an interrupt comes in it, and not between both,
        # which would leave it waiting.
        self.send, self.throw = coroutine.send, coroutine.throw  # type: ignore[method-assign, assignment]

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("cr_", "_")):
            return getattr(self._coroutine, name)
        raise AttributeError(
            f"{self._state} yet, so there is no {name!r}: use `await {self._call}`",
            name=name,
            obj=self,
        )

    if not TYPE_CHECKING:  # type checkers find these mistakes themselves
        __array__ = __getitem__ = __len__ = __iter__ = _refuse_before_await
        __int__ = __float__ = __complex__ = __neg__ = _refuse_before_await
        __add__ = __radd__ = __sub__ = __rsub__ = _refuse_before_await
        __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_before_await
        __matmul__ = __rmatmul__ = __pow__ = __rpow__ = _refuse_before_await
        __lt__ = __le__ = __gt__ = __ge__ = _refuse_before_await

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<awaitable of {self._call}: {self._state} before `await {self._call}`>"


type _Async[**P, T] = Callable[P, Coroutine[Any, Any, T]]


def awaited[**P, T](state: str, call: str) -> Callable[[_Async[P, T]], _Async[P, T]]:
    """Decorates an async function of the package: its result before `await` is a
    `Reading` with that state and call."""

    def decorate(function: _Async[P, T]) -> _Async[P, T]:
        @wraps(function)
        def call_it(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return Reading(function(*args, **kwargs), state, call)

        return call_it

    return decorate
