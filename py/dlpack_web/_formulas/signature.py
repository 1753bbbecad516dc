"""Arguments of an ElementwiseKernel or ReductionKernel: what each parameter is given,
and errors that name the parameter."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._backends import owner
from .._backends.calls import recorder
from .._kernels import named
from .._kernels.kernel import Kernel
from .._layout.dtype import DType, parse_dtype
from .._layout.text import type_of
from .._tensor.tensor import Tensor
from .formulas import DTYPES, Param, Source


class BoundArguments(NamedTuple):
    """kinds: see formulas.elementwise. shape: that of the tensors, () if all have it;
    None without tensors. inputs: tensors and floats. outputs: those that were given, or
    nothing."""

    kinds: list[str]
    shape: tuple[int, ...] | None
    inputs: tuple[Any, ...]
    outputs: tuple[Tensor, ...]
    device: int


class Signature:
    """The parameters of a kernel."""

    def __init__(
        self,
        name: Any,
        inputs: Sequence[Param],
        outputs: Sequence[Param],
        type_: str = "",
    ) -> None:
        """type_: of partial results."""
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type_of(name)}")
        self.name = name
        self.inputs, self.outputs = inputs, outputs
        self.dtypes = [parse_dtype(DTYPES[param.type]) for param in outputs]
        self._params = [*inputs, *outputs]
        self._names = [param.name for param in self._params]
        self._is_half = "f16" in [type_, *(param.type for param in self._params)]
        self._half_devices: set[int] = set()
        self.kernels: dict[Any, Kernel] = {}  # by what differs in their sources
        #: Kinds of inputs that are tensors.
        self.usual = ["r" if param.raw else "t" for param in inputs]
        #: How many arguments a call has that may be cached: with its outputs. With f16
        #: none is, because Kernel takes numbers beyond those of f16.
        self.cached = 0 if any(x.type == "f16" for x in inputs) else len(self._params)

    def __str__(self) -> str:
        ins, outs = (", ".join(map(str, x)) for x in (self.inputs, self.outputs))
        return f"({ins}) -> ({outs})"

    def sort(self, args: tuple[Any, ...]) -> BoundArguments:
        """Each argument with its parameter; raises if one does not fit it."""
        inputs, outputs = len(self.inputs), len(self.outputs)
        if len(args) not in (inputs, inputs + outputs):
            raise TypeError(
                f'kernel "{self.name}" takes {inputs} arguments {self}, or '
                f"{inputs + outputs} with its outputs, not {len(args)}"
            )
        with named(self._names):
            device, values = _core._arguments(*args)
        kinds: list[str] = []
        shape: tuple[int, ...] | None = None
        for arg, param in zip(args, self._params, strict=False):
            param.check(arg)
            if param.output:
                continue
            if not isinstance(arg, Tensor):
                kinds.append("n")
            elif param.raw:
                kinds.append("r")
            elif not arg.shape:
                kinds.append("s")
                shape = shape or ()
            else:
                kinds.append("t")
                if shape and arg.shape != shape:
                    raise ValueError(self._disagreement(args))
                shape = arg.shape
        outs: Any = values[inputs:]
        return BoundArguments(kinds, shape, values[:inputs], outs, device)

    def kernel(self, key: Any, source: Callable[[], Source]) -> Kernel:
        """The kernel for some kinds of arguments, made at the first call."""
        found = self.kernels.get(key)
        if found is None:
            found = self.kernels[key] = Kernel._of(source(), self.name)
        return found

    def check_device(self, device: int) -> None:
        """BufferError if the shader needs f16, and the device lacks it."""
        if not self._is_half or device in self._half_devices:
            return
        if not owner(device).has_feature(device, "shader-f16"):
            raise BufferError(
                f'kernel "{self.name}" is of f16, and webgpu:{device} lacks the feature '
                '"shader-f16", which request_device() asks for where the adapter has it: '
                "use f32"
            )
        self._half_devices.add(device)

    def outputs_in(self, args: tuple[Any, ...]) -> Any:
        """What a call with its outputs returns."""
        outputs = args[len(self.inputs) :]
        return outputs[0] if len(outputs) == 1 else outputs

    def onto(
        self,
        bound: BoundArguments,
        shape: tuple[int, ...],
        run: Callable[[list[Tensor]], None],
    ) -> Any:
        """Calls `run` with the outputs: those given, or fresh ones, which are released if
        it raises. Returns the output, or a tuple of several."""
        new: list[Tensor] = []
        try:
            if not bound.outputs:
                for dtype in self.dtypes:
                    new.append(fresh(shape, dtype, bound.device))
            outputs = new or list(bound.outputs)
            run(outputs)
        except BaseException:
            for tensor in new:
                tensor.release()
            raise
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def check_outputs(
        self, outputs: Sequence[Tensor], shape: tuple[int, ...], of: str
    ) -> None:
        for tensor, param in zip(outputs, self.outputs, strict=True):
            if tensor.shape != shape:
                raise ValueError(
                    f"{param.name} has shape {tensor.shape}, {of} {shape}: outputs are "
                    "not broadcast"
                )

    def _disagreement(self, args: Sequence[Any]) -> str:
        shapes = ", ".join(
            f"{param.name} {arg.shape}"
            for arg, param in zip(args, self.inputs, strict=False)
            if isinstance(arg, Tensor) and not param.raw
        )
        return (
            f'the shapes of kernel "{self.name}" must agree: {shapes}; only numbers and '
            "tensors of shape () are broadcast"
        )


def fresh(shape: tuple[int, ...], dtype: DType, device: int) -> Tensor:
    return owner(device).empty(shape, dtype, device, recorder() is not None)
