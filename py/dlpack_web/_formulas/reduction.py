"""ReductionKernel: a formula over all elements or along axes, CuPy's form in WGSL."""

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from .. import _core
from .._backends import owner
from .._backends.calls import recorder
from .._backends.checks import Arguments, Counts, Key
from .._kernels import named
from .._kernels.kernel import Kernel
from .._layout.dtype import parse_dtype
from .._layout.views import extents
from .._tensor.tensor import Tensor
from . import formulas
from .generated import IN_REDUCTIONS
from .signature import BoundArguments, Signature, fresh

# For each type that is reduced: the dtype of partial results, and how many of them.
_PARTIAL = {type_: (parse_dtype(dtype), 1) for type_, dtype in formulas.DTYPES.items()}
_PARTIAL |= {
    f"vec{lanes}{type_[0]}": (dtype, lanes)
    for type_, (dtype, _) in tuple(_PARTIAL.items())
    for lanes in (2, 4)
    if type_ != "f16"
}


class ReductionKernel:
    """A reduction of all elements or along axes, like CuPy's class of that name.

    Floats are summed in another order than NumPy's, so results may differ in the last
    digits: each of 10 million elements goes through at most 100 operations.

    Parameters
    ----------
    in_params, out_params : str
        As for ElementwiseKernel.
    map_expr : str
        An expression of the inputs, for each element; `i` is its index in row-major
        order, `_J` that among the elements that are reduced to one, `n` their number.
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
        The type of intermediate values; default: the type of the first output. It may be a
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
        self._signature = Signature(name, inputs, outputs, type_)
        self._partial, self._lanes = _PARTIAL[type_]
        self._prepared: dict[tuple[Any, ...], list[_Pass]] = {}
        #: As of Kernel, and the sizes that the call had.
        self._last: tuple[int, Tensor | None] = 0, None

    def __call__(
        self,
        *args: Tensor | float,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
    ) -> Any:
        """Submits, and returns the outputs.

        Parameters
        ----------
        *args : Tensor or float
            As of ElementwiseKernel.
        axis : int or sequence of int, optional
            One axis, or several, that are reduced: ``(0, 2)``. Negative ones count from the
            last. Default: all axes.
        keepdims : bool
            Whether they stay, with an extent of 1.

        Returns
        -------
        Tensor or tuple of Tensor
            The outputs; new ones are for you to release.

        Raises
        ------
        ValueError
            An axis that the inputs do not have, or that is given twice.
        BufferError, TypeError
            As of ElementwiseKernel.

        Examples
        --------
        >>> total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
        >>> device = await dlw.webgpu.request_device()
        >>> x = dlw.from_dlpack(np.ones((2, 3, 4), "float32"), device=device)
        >>> total(x).shape, total(x, axis=-1).shape
        ((), (2, 3))
        >>> await total(x, axis=(0, 2), keepdims=True).to_host()
        array([[[8.],
                [8.],
                [8.]]], dtype=float32)
        """
        signature, keepdims = self._signature, bool(keepdims)
        options: Key = (axis, keepdims) if len(args) == signature.cached else ()
        number, sizes = self._last
        key: Key = (*args, sizes), *options
        if options and recorder() is None and _core._again(number, key):
            return signature.outputs_in(args)
        bound = signature.sort(args)
        if bound.shape is None:
            raise ValueError(f'kernel "{signature.name}" needs a tensor to reduce')
        axes = _axes(axis, bound.shape)
        shape = tuple(
            1 if at in axes else extent
            for at, extent in enumerate(bound.shape)
            if keepdims or at not in axes
        )
        if bound.outputs:
            signature.check_outputs(bound.outputs, shape, "the result has")
        return signature.onto(
            bound, shape, lambda made: self._run(bound, made, axes, options)
        )

    @property
    def wgsl(self) -> str:
        """The shader for tensors, as it is generated for few elements; more of them are
        reduced in two passes.

        >>> total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
        >>> "fn _reduce(a: f32, b: f32) -> f32" in total.wgsl
        True
        """
        return formulas.reduction(self._what, self._signature.usual, "whole").wgsl

    async def ready(self, device: str | tuple[int, int] | None = None) -> None:
        """Returns when the shaders for tensors have compiled. Waiting is optional.

        Parameters
        ----------
        device : str or Device, optional
            Default: "webgpu".

        Raises
        ------
        KernelError
            As for `Kernel.ready`; its message names the formula, and `line` counts from that
            one's first line.

        Examples
        --------
        >>> broken = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + c", "y = a", 0)
        >>> device = await dlw.webgpu.request_device()
        >>> try:
        ...     await broken.ready(device)
        ... except dlw.KernelError as error:
        ...     "reduce_expr, line 1:5" in str(error)
        True
        """
        for pass_ in formulas.PASSES:
            await self._kernel(self._signature.usual, pass_).ready(device)

    def __repr__(self) -> str:
        return f"<ReductionKernel {self._signature.name!r} {self._signature}>"

    def _run(
        self,
        bound: BoundArguments,
        outputs: list[Tensor],
        axes: frozenset[int],
        options: Key,
    ) -> None:
        count = outputs[0].size
        if count == 0:
            return
        device, kinds = bound.device, "".join(bound.kinds)
        # After an error of the device, the buffers of the sizes may be invalid.
        errors = owner(device).error_count(device)
        key = device, errors, kinds, bound.shape, axes
        cached = self._prepared.get(key)
        passes = cached or self._prepare(bound, axes, count)
        try:
            self._run_passes(passes, bound, outputs, options)
        except BaseException:
            if cached is None:
                for one in passes:
                    one.sizes.release()
            raise
        self._prepared[key] = passes
        # Other threads may do the same meanwhile.
        for oldest in list(self._prepared)[:-_KEPT]:
            self._prepared.pop(oldest, None)

    def _run_passes(
        self,
        passes: "list[_Pass]",
        bound: BoundArguments,
        outputs: list[Tensor],
        options: Key,
    ) -> None:
        if len(passes) == 1:
            (one,) = passes
            number = one.run(bound.device, (*bound.inputs, *outputs), options)
            self._last = number, one.sizes
            return
        first, last = passes
        shape = (first.elements,)
        with fresh(shape, self._partial, bound.device) as between:
            first.run(bound.device, (*bound.inputs, between))
            pairs = zip(bound.inputs, bound.kinds, strict=True)
            raw = (arg for arg, kind in pairs if kind == "r")
            last.run(bound.device, (*raw, between, *outputs))

    def _prepare(
        self, bound: BoundArguments, axes: frozenset[int], count: int
    ) -> "list[_Pass]":
        """The passes, with their sizes on the device."""
        self._signature.check_device(bound.device)
        shape = bound.shape or ()
        if 0 in shape:  # without elements, axes may be longer than 32 bits say
            shape, axes = (0, count), frozenset({0})
        words = formulas.sizes(shape, axes)
        chunks, n = words[3:5]
        if chunks == 1:
            return [self._pass("whole", bound, words)]
        last = formulas.sizes((chunks, count), {0}, n)
        return [self._pass("first", bound, words), self._pass("last", bound, last)]

    def _pass(
        self, pass_: str, bound: BoundArguments, words: tuple[int, ...]
    ) -> "_Pass":
        kernel = self._kernel(bound.kinds, pass_, words[7] == 2)
        outputs, lanes, _, chunks = words[:4]
        groups = formulas.grid(outputs * chunks * lanes)
        with _core.from_buffer(array("I", words)) as host:
            sizes = owner(bound.device).upload(host, bound.device, _U32)
        _core._uncount(sizes)  # live_tensors() is for those of users
        elements = outputs * chunks * self._lanes
        return _Pass(kernel, groups, elements, sizes)

    def _kernel(self, kinds: list[str], pass_: str, one_axis: bool = True) -> Kernel:
        key = pass_, one_axis, "" if pass_ == "last" else "".join(kinds)
        source = partial(formulas.reduction, self._what, kinds, pass_, one_axis)
        return self._signature.kernel(key, source)


_U32 = parse_dtype("uint32")
_KEPT = 8  # shapes whose sizes stay on the device


class _Pass(NamedTuple):
    """A shader and its sizes, on a device. elements: of the partial results."""

    kernel: Kernel
    groups: Counts
    elements: int
    sizes: _core.Tensor

    def run(self, device: int, args: Arguments, options: Key = ()) -> int:
        # The options of a call that is cached have its sizes: those of others may be freed.
        args = (*args, self.sizes)
        key = options and (args, *options)
        with named(self.kernel._names):
            return self.kernel._run(device, args, self.groups, key)


def _axes(axis: Any, shape: tuple[int, ...]) -> frozenset[int]:
    """The axes that are reduced, from 0 on."""
    ndim = len(shape)
    if axis is None:
        return frozenset(range(ndim))
    try:
        indices = extents(axis)
    except TypeError:
        raise TypeError(f"axis must be ints or None, not {axis!r}") from None
    found: set[int] = set()
    for at in indices:
        if not -ndim <= at < ndim:
            raise ValueError(f"axis {at} is out of bounds for shape {shape}")
        if at % ndim in found:
            raise ValueError(f"axis {at} is given twice for shape {shape}")
        found.add(at % ndim)
    return frozenset(found)


ReductionKernel.__module__ = "dlpack_web.webgpu"  # where users find it
