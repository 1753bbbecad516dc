"""What people try on a tensor that is not there, and what to do instead.

A Tensor shares memory; it computes nothing. All of these raise.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, NoReturn

_ARRAY = "np.asarray(t), which shares its memory"
_ATTRIBUTES = {
    "T": "t.permute_dims((1, 0)) is such a view",
    "mT": "t.permute_dims(...) is such a view",
    "transpose": "t.permute_dims(axes) is such a view",
    "swapaxes": "t.permute_dims(axes) is such a view",
    "view": "t.reshape(shape) and t[...] are views",
    "flatten": "t.reshape(-1) is such a view",
    "ravel": "t.reshape(-1) is such a view",
    "squeeze": "t.reshape(shape) is such a view",
    "unsqueeze": "t[..., None] is such a view",
    "astype": "t.to_device(device, dtype=...) converts on the way; else np.asarray(t).astype",
    "to": "use t.to_device(device)",
    "cuda": "use t.to_device('webgpu')",
    "gpu": "use t.to_device('webgpu'); the GPUBuffer is t.gpu_buffer",
    "cpu": "use t.to_device('cpu'), or await t.to_host()",
    "data": "use t.numpy(); in JavaScript t.js.data",
    "item": "use t.numpy().item()",
    "tolist": "use t.numpy().tolist()",
    "copy": "use dlw.from_dlpack(t, copy=True)",
    "clone": "use dlw.from_dlpack(t, copy=True)",
    "contiguous": "use dlw.from_dlpack(t, copy=True)",
    "detach": "t is memory alone and has no gradient",
    "read": "use await t.to_host()",
    "to_cpu": "use await t.to_host()",
    "destroy": "use t.release()",
    "dispose": "use t.release()",
    "free": "use t.release()",
    "close": "use t.release()",
}
_NUMPY = {
    *(
        "sum",
        "mean",
        "min",
        "max",
        "std",
        "var",
        "prod",
        "argmax",
        "argmin",
        "any",
        "all",
    ),
    *("dot", "round", "clip", "sort", "cumsum", "fill", "repeat", "nonzero", "abs"),
}


def _refuse_operator(symbol: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *_: object) -> NoReturn:
        raise TypeError(
            f"a Tensor does no arithmetic, so that {symbol} is not supported: use "
            f"{_ARRAY}"
        )

    return refuse


class Hints:
    """A base of Tensor: operators and attributes of arrays, each with the way out."""

    __slots__ = ()

    if not TYPE_CHECKING:  # which finds these mistakes by itself
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
        __neg__ = _refuse_operator("-")
        __abs__ = _refuse_operator("abs()")
        __lt__ = _refuse_operator("<")
        __le__ = _refuse_operator("<=")
        __gt__ = _refuse_operator(">")
        __ge__ = _refuse_operator(">=")
        __contains__ = _refuse_operator("in")

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            message = f"{kind!r} object has no attribute {name!r}"
            if name in _ATTRIBUTES:
                message += f": {_ATTRIBUTES[name]}"
            elif name in _NUMPY:
                message += f": a Tensor does no arithmetic; use {_ARRAY}"
            raise AttributeError(message, name=name, obj=self)

        def __setitem__(self, key: object, value: object) -> NoReturn:
            raise TypeError(
                "elements of a Tensor are written by t.write(x) or t[...].write(x), or, on "
                "the CPU, through np.asarray(t)"
            )

        def __reduce_ex__(self, protocol: object) -> NoReturn:
            raise TypeError(
                "a Tensor is a hold on memory and cannot be pickled or copied: use "
                "t.numpy(), or dlw.from_dlpack(t, copy=True)"
            )


class Reading[T](Coroutine[Any, Any, T]):
    """What `to_host()` returns: to be awaited, like any coroutine; who takes it for the
    array is told so."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

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
            f"the elements are not there yet, so that there is no {name!r}: use "
            "`await t.to_host()`",
            name=name,
            obj=self,
        )

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the elements are not there yet: use `await t.to_host()`")

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError("the elements are not there yet: use `await t.to_host()`")

    def __len__(self) -> NoReturn:
        raise TypeError("the elements are not there yet: use `await t.to_host()`")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "<what t.to_host() reads; await it>"
