"""A session's feeds, checked against the model's inputs."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dlpack_web import Device, Tensor
from dlpack_web.internal import share

from ._arrays import (
    DTYPES,
    Array,
    check_masks,
    no_such_type,
    shared,
    strings_of,
    type_of,
    widened,
)
from ._state import Fail, invalid, unsupported, worded
from ._values import OrtValue


class NodeArg(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str
    shape: list[int | str | None]

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'NodeArg' object")  # as in native onnxruntime


# onnxruntime-web's value for an extent without a name: -1, unsigned.
_UNNAMED = (1 << 32) - 1


def node_arg(slot: Mapping[str, Any], types: Mapping[str, str]) -> NodeArg:
    """A NodeArg from JavaScript's description; types: the model's own, by name."""
    if not slot["isTensor"]:
        return NodeArg(slot["name"], types.get(slot["name"], "unknown"), [])
    return NodeArg(slot["name"], type_of(slot["type"]), shape_of(slot["shape"]))


def shape_of(extents: Iterable[int | str]) -> list[int | str | None]:
    """A shape with None for each free extent without a name."""
    return [
        (extent or None)
        if isinstance(extent, str)
        else (extent if 0 <= extent < _UNNAMED else None)
        for extent in extents
    ]


def present(arg: NodeArg) -> NodeArg:
    """For an optional tensor of numbers the NodeArg of the tensor, which onnxruntime-web
    takes and returns."""
    if not arg.type.startswith("optional(tensor(") or "string" in arg.type:
        return arg
    return arg._replace(type=arg.type.removeprefix("optional(").removesuffix(")"))


class Feeds:
    """The inputs of one session."""

    def __init__(
        self,
        inputs: list[NodeArg],
        overridable: list[NodeArg],
        device: Device | None,
        indices: Mapping[str, int],
        returns_strings: bool,
    ) -> None:
        """indices: inputs that are indices into a value of the model; its extent."""
        self._returns_strings = returns_strings
        self._required = {arg.name for arg in inputs}
        self._inputs = {
            arg.name: (i, arg, DTYPES.get(arg.type))
            for i, arg in enumerate(map(present, [*inputs, *overridable]))
        }
        self._device = device
        # On the CPU onnxruntime-web checks indices itself.
        self._indices = indices if device else {}

    def check_names(self, feeds: Mapping[str, Any]) -> None:
        """ValueError for missing inputs, InvalidArgument for unknown names."""
        if feeds.keys() == self._required:
            return
        missing = self.missing(feeds)
        if missing:
            raise ValueError(
                f"Required inputs ({missing}) are missing from input feed ({list(feeds)})."
            )
        for name in feeds:
            if not isinstance(name, str):
                raise TypeError(f"names of inputs must be str, not {name!r}")
            if name not in self._inputs and feeds[name] is not None:
                raise invalid(f"Invalid input name: {name}")

    def missing(self, feeds: Mapping[str, Any]) -> list[str]:
        return [
            name
            for name in self._inputs
            if name in self._required and name not in feeds
        ]

    def has(self, name: str) -> bool:
        return name in self._inputs

    def collected(
        self, feeds: Mapping[str, Any]
    ) -> tuple[list[tuple[int, Tensor | Array]], dict[str, Any]]:
        """Tensors and arrays by the number of their input, strings by name."""
        found: list[tuple[int, Tensor | Array]] = []
        strings: dict[str, Any] = {}
        for name, given in feeds.items():
            if given is None and name not in self._required:
                continue  # the model's own value
            i, arg, dtype = self._inputs[name]
            if (
                type(given) is np.ndarray
                and given.dtype is dtype
                and given.flags.carray  # contiguous, aligned and writable
                and name not in self._indices
            ):
                # The usual feed: JavaScript reads the array itself.
                _check_shape(arg, given.shape)
                found.append((i, given))
                continue
            value = given._tensor if isinstance(given, OrtValue) else given
            if not arg.type.startswith("tensor("):
                raise unsupported(
                    f"input {name} is {arg.type}, and onnxruntime-web takes only tensors"
                )
            try:
                if arg.type == "tensor(string)":
                    strings[str(i)] = _strings(arg, value, self._returns_strings)
                else:
                    found.append((i, self._tensor(arg, value)))
            except BufferError as error:
                if isinstance(value, Tensor):
                    raise  # it was released, or its device was lost
                raise invalid(f"input {name}: {error}") from None
        return found, strings

    def _tensor(self, arg: NodeArg, value: Any) -> Tensor:
        tensor = value if type(value) is Tensor else _shared(arg, value)
        tensor = widened(tensor, DTYPES.get(arg.type))
        actual = type_of(tensor.dtype)
        if actual != arg.type:
            raise invalid(
                f"Unexpected input data type. Actual: ({actual}) , expected: ({arg.type})"
            )
        _check_shape(arg, tensor.shape)
        device = tensor.device
        if arg.name in self._indices and device.is_host:
            _check_indices(arg, tensor, self._indices[arg.name])
        if device.is_host or device == self._device:
            return tensor
        runs = "on the CPU" if self._device is None else f"on {self._device}"
        raise invalid(
            f"input {arg.name} is on {device}, but this session runs {runs}: `await "
            "tensor.to_host()` first, or create the session on that device"
        )


def _shared(arg: NodeArg, value: Any) -> Tensor:
    """A hold on the memory of a feed; lists and misaligned arrays are copied."""
    if isinstance(value, list):
        value = _listed(arg, value)
    _check_is_array(arg, value)
    if not hasattr(value, "__dlpack__"):
        value = np.asanyarray(value)  # a mask is kept, and refused below
    if not isinstance(value, np.ndarray):
        return share(value)
    if value.dtype.kind not in "fiubOUSV" or value.dtype.char == "g":
        raise no_such_type(value)
    return shared(value)


def _check_is_array(arg: NodeArg, value: Any) -> None:
    """The error for None or a dict: in onnxruntime, an optional value or a map."""
    if value is None:
        raise worded(Fail, f"Missing Input: {arg.name}")
    if isinstance(value, Mapping):
        try:
            for each in value.values():
                float(each)
        except (TypeError, ValueError) as error:
            raise worded(Fail, str(error)) from None
        raise invalid(
            f"Unexpected input data type. Actual: (map) , expected: ({arg.type})"
        )
    if isinstance(value, np.generic) or not (
        hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    ):
        raise RuntimeError(f"Unable to handle object of type {type(value)}")


def _listed(arg: NodeArg, values: list[Any]) -> Array:
    check_masks(values)
    try:
        return np.array(values, dtype=DTYPES.get(arg.type))
    except (ValueError, TypeError, OverflowError) as error:
        raise RuntimeError(
            f"Could not create tensor from given input list: input {arg.name}: {error}"
        ) from None


def _strings(arg: NodeArg, value: Any, returned: bool) -> dict[str, Any]:
    """Strings in JavaScript's form."""
    if isinstance(value, Tensor):
        raise invalid(
            f"Unexpected input data type. Actual: ({type_of(value.dtype)}) , expected: "
            "(tensor(string))"
        )
    if not isinstance(value, list):
        _check_is_array(arg, value)
    data, shape = strings_of(arg.name, value, returned)
    _check_shape(arg, shape)
    return {"data": data, "dims": list(shape)}


def _check_indices(arg: NodeArg, tensor: Tensor, extent: int) -> None:
    """InvalidArgument for indices with which a GPU would read other elements."""
    indices = tensor.numpy()
    if indices.size == 0:
        return
    for index in (int(indices.min()), int(indices.max())):
        if not -extent <= index < extent:
            raise invalid(
                f"input {arg.name}: indices element out of data bounds, idx={index} must be "
                f"within the inclusive range [{-extent},{extent - 1}]"
            )


def _check_shape(arg: NodeArg, shape: tuple[int, ...]) -> None:
    expected = arg.shape
    if len(shape) != len(expected):
        if not expected:
            return  # a scalar or unknown: onnxruntime checks it
        raise invalid(
            f"Invalid rank for input: {arg.name} Got: {len(shape)} Expected: "
            f"{len(expected)} Please fix either the inputs/outputs or the model."
        )
    wrong = [
        f" index: {i} Got: {got} Expected: {want}\n"
        for i, (got, want) in enumerate(zip(shape, expected, strict=True))
        if got != want and isinstance(want, int)
    ]
    if wrong:
        raise invalid(
            f"Got invalid dimensions for input: {arg.name} for the following indices\n"
            f"{''.join(wrong)} Please fix either the inputs/outputs or the model."
        )
