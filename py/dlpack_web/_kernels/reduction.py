"""ReductionKernel: a formula over all elements or along an axis, CuPy's form in
WGSL."""

from array import array
from math import prod
from typing import Any

from .. import _core
from .._backends import owner
from .._layout.dtype import parse_dtype
from .._tensor.tensor import Tensor
from . import formulas
from .arguments import (
    Given,
    Signature,
    check_half,
    fresh,
    named,
)
from .kernel import Kernel
from .words import IN_REDUCTIONS

# For each type that is reduced: the dtype of partial results, and how many of them.
_PARTIAL = {type_: (parse_dtype(dtype), 1) for type_, dtype in formulas.DTYPES.items()}
_PARTIAL |= {
    f"vec{lanes}{type_[0]}": (dtype, lanes)
    for type_, (dtype, _) in tuple(_PARTIAL.items())
    for lanes in (2, 4)
    if type_ != "f16"
}


class ReductionKernel:
    """A reduction of all elements or along an axis, like CuPy's class of that name.

    Floats are summed in another order than NumPy's, so results may differ in the last
    digits.

    Parameters
    ----------
    in_params, out_params : str
        As for ElementwiseKernel.
    map_expr : str
        An expression of the inputs, for each element; `i` is its index in row-major
        order, `n` the number of elements that are reduced to one.
    reduce_expr : str
        An expression of `a` and `b`, two such values; associative and commutative.
    post_map_expr : str
        Statements that set the outputs from the result `a`; `i` is the index of the
        output.
    identity : float or str
        The value that changes nothing, a number or WGSL; also the result without
        elements.
    name : str
        The kernel's label in messages.
    reduce_type : str, optional
        What values are converted to; default: the type of the first output. It may be a
        vector: vec2f, vec4f, vec2i, vec4i, vec2u, vec4u.

    Raises
    ------
    ValueError, TypeError
        Parameters and formulas that are none.

    Examples
    --------
    >>> norm = dlw.webgpu.ReductionKernel(
    ...     "f32 x", "f32 y", "x * x", "a + b", "y = sqrt(a)", 0, "norm"
    ... )
    >>> device = await dlw.webgpu.request_device()
    >>> array = np.array([[3, 4], [5, 12]], "float32")
    >>> x = dlw.from_dlpack(array, device=device)
    >>> await norm(x, axis=1).to_host()
    array([ 5., 13.], dtype=float32)
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: float | str,
        name: str = "reduce_kernel",
        *,
        reduce_type: str | None = None,
    ) -> None:
        inputs, outputs = formulas.parse(in_params, out_params, IN_REDUCTIONS)
        if all(param.raw for param in inputs):
            raise ValueError("a reduction needs an input that is not raw")
        type_ = outputs[0].type if reduce_type is None else reduce_type
        if type_ not in _PARTIAL:
            raise ValueError(
                f"reduce_type must be one of {', '.join(_PARTIAL)}, not {type_!r}"
            )
        self._what = formulas.Reduction(
            inputs,
            outputs,
            formulas.formula(map_expr, "map_expr"),
            formulas.formula(reduce_expr, "reduce_expr"),
            formulas.formula(post_map_expr, "post_map_expr"),
            formulas.identity_of(identity, type_),
            type_,
        )
        self._signature = Signature(name, inputs, outputs)
        self._types = {param.type for param in (*inputs, *outputs)} | {type_}
        self._kernels: dict[tuple[str, str], tuple[Kernel, list[str]]] = {}
        self._checked: set[int] = set()  # devices

    def __call__(
        self, *args: Tensor | float, axis: int | None = None, keepdims: bool = False
    ) -> Any:
        """Submits, and returns the outputs.

        Parameters
        ----------
        *args : Tensor or float
            As of ElementwiseKernel.
        axis : int, optional
            The axis that is reduced; default: all axes.
        keepdims : bool
            Whether it stays, with an extent of 1.

        Returns
        -------
        Tensor or tuple of Tensor
            The outputs; new ones are for you to release.

        Raises
        ------
        ValueError
            An axis that the inputs do not have.
        BufferError, TypeError
            As of ElementwiseKernel.

        Examples
        --------
        >>> total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
        >>> device = await dlw.webgpu.request_device()
        >>> x = dlw.from_dlpack(np.ones((2, 3), "float32"), device=device)
        >>> total(x).shape, total(x, axis=-1).shape, total(x, axis=0, keepdims=True).shape
        ((), (2,), (1, 3))
        """
        signature = self._signature
        given = signature.sort(args)
        if given.shape is None:
            raise ValueError(f'kernel "{signature.name}" needs a tensor to reduce')
        shape, extents = _split(given.shape, axis, bool(keepdims))
        if given.outputs:
            signature.check_outputs(given.outputs, shape, "the result has")
        return signature.onto(
            given, shape, lambda outputs: self._run(given, outputs, *extents)
        )

    @property
    def wgsl(self) -> str:
        """The shader for tensors, as it is generated for few elements; more of them are
        reduced in two passes.

        >>> total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
        >>> "fn _reduce(a: f32, b: f32) -> f32" in total.wgsl
        True
        """
        return formulas.reduction(self._what, self._usual(), "whole").wgsl

    async def ready(self, device: str | tuple[int, int] | None = None) -> None:
        """Returns when the shaders for tensors have compiled for a device; default the
        usual one. Waiting is optional. KernelError as for `Kernel.ready`; its message
        names the formula, and `line` counts from that one's first line.

        >>> broken = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + c", "y = a", 0)
        >>> device = await dlw.webgpu.request_device()
        >>> try:
        ...     await broken.ready(device)
        ... except dlw.KernelError as error:
        ...     "reduce_expr, line 1:5" in str(error)
        True
        """
        for pass_ in formulas.PASSES:
            await self._kernel(self._usual(), pass_)[0].ready(device)

    def __repr__(self) -> str:
        return f"<ReductionKernel {self._signature.name!r} {self._signature}>"

    def _run(
        self, given: Given, outputs: list[Tensor], outer: int, length: int, inner: int
    ) -> None:
        count = outer * inner
        if count == 0:
            return
        if given.device not in self._checked:
            check_half(self._types, self._signature.name, given.device)
            self._checked.add(given.device)
        plan = formulas.plan(count, inner, length)
        sizes = count, inner, length
        if plan.chunks == 1:
            self._pass("whole", given, [*given.inputs, *outputs], sizes, plan, length)
            return
        dtype, lanes = _PARTIAL[self._what.type]
        with fresh((count * plan.chunks * lanes,), dtype, given.device) as partial:
            self._pass("first", given, [*given.inputs, partial], sizes, plan, length)
            sizes = count, count, plan.chunks
            last = formulas.plan_last(count, plan.chunks)
            self._pass("last", given, [partial, *outputs], sizes, last, length)

    def _pass(
        self,
        pass_: str,
        given: Given,
        args: list[Any],
        sizes: tuple[int, int, int],
        plan: formulas.Plan,
        n: int,
    ) -> None:
        kernel, names = self._kernel(given.kinds, pass_)
        groups = formulas.grid(sizes[0] * plan.chunks * plan.lanes)
        words = array("I", (*sizes, plan.lanes, plan.chunk, plan.chunks, n, 0))
        with (
            _core.from_buffer(words) as host,
            owner(given.device).upload(host, given.device, _U32) as uniform,
            named(names),
        ):
            kernel(*args, uniform, workgroups=groups)

    def _usual(self) -> list[str]:
        return ["r" if param.raw else "t" for param in self._signature.inputs]

    def _kernel(self, kinds: list[str], pass_: str) -> tuple[Kernel, list[str]]:
        """The kernel of a pass, and the names of its arguments."""
        key = pass_, "" if pass_ == "last" else "".join(kinds)
        found = self._kernels.get(key)
        if found is None:
            signature = self._signature
            wgsl, parts = formulas.reduction(self._what, kinds, pass_)
            kernel = Kernel(wgsl, label=signature.name)._of(parts)
            maps, finishes = formulas.PASSES[pass_]
            partial = ["the partial results"]
            names = [param.name for param in signature.inputs] if maps else partial
            outs = [param.name for param in signature.outputs] if finishes else partial
            found = self._kernels[key] = kernel, [*names, *outs, "the sizes"]
        return found


_U32 = parse_dtype("uint32")


def _split(
    shape: tuple[int, ...], axis: Any, keepdims: bool
) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The shape of the result, and the numbers of elements before, along and after the
    axis."""
    ndim = len(shape)
    if axis is None:
        return (1,) * ndim if keepdims else (), (1, prod(shape), 1)
    try:
        at = axis.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"axis must be an int or None, not {axis!r}") from None
    if not -ndim <= at < ndim:
        raise ValueError(f"axis {at} is out of bounds for shape {shape}")
    at %= ndim
    before, length, after = shape[:at], shape[at], shape[at + 1 :]
    left = (*before, 1, *after) if keepdims else (*before, *after)
    return left, (prod(before), length, prod(after))


ReductionKernel.__module__ = "dlpack_web.webgpu"  # where users find it
