"""A session's feeds, checked against the model's inputs."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._tensor.device import Device
from .._tensor.tensor import Tensor, share
from ._state import Fail, invalid, worded
from ._state import NotImplemented as NotThere
from ._types import type_of
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


class Feeds:
    """The inputs of one session."""

    def __init__(
        self,
        inputs: list[NodeArg],
        overridable: list[NodeArg],
        device: Device | None,
        indices: Mapping[str, int],
    ) -> None:
        """indices: the inputs that are indices into a value of the model, with its
        extent."""
        self._required = {arg.name for arg in inputs}
        self._inputs = {
            arg.name: (i, arg, _BY_TYPE.get(arg.type))
            for i, arg in enumerate([*inputs, *overridable])
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
            if name not in self._inputs:
                raise invalid(f"Invalid input name: {name}")

    def missing(self, feeds: Mapping[str, Any]) -> list[str]:
        """The names missing in `feeds`."""
        return [
            name
            for name in self._inputs
            if name in self._required and name not in feeds
        ]

    def has(self, name: str) -> bool:
        """Whether the model has that input."""
        return name in self._inputs

    def collected(
        self, feeds: Mapping[str, Any]
    ) -> "tuple[list[tuple[int, Tensor | np.ndarray[Any, Any]]], dict[str, Any]]":
        """Tensors and arrays by the number of their input, and inputs of strings by
        name."""
        found: list[tuple[int, Tensor | np.ndarray[Any, Any]]] = []
        strings: dict[str, Any] = {}
        for name, given in feeds.items():
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
                raise worded(
                    NotThere,
                    f"input {name} is {arg.type}, and onnxruntime-web takes only tensors",
                )
            if arg.type == "tensor(string)":
                strings[str(i)] = _strings(arg, value)
            else:
                found.append((i, self._tensor(arg, value)))
        return found, strings

    def _tensor(self, arg: NodeArg, value: Any) -> Tensor:
        tensor = value if type(value) is Tensor else _shared(arg, value)
        actual = type_of(tensor.dtype)
        if actual == _NARROW.get(arg.type) and tensor.device.is_host:
            tensor = share(tensor.numpy().astype(_BY_TYPE[arg.type]))
            actual = arg.type
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
    elif isinstance(value, np.generic) or not (
        hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    ):
        raise _not_an_array(arg, value)
    array = value if isinstance(value, np.ndarray) else None
    if array is not None and array.dtype.kind not in "fiubOUSV":
        raise _no_such_type(array)
    if array is not None and array.dtype.char == "g":
        raise _no_such_type(array)
    if array is None and not hasattr(value, "__dlpack__"):
        array = value = np.asanyarray(value)  # a mask is kept, and refused below
    if array is not None and not array.dtype.isnative:
        value = array.astype(array.dtype.newbyteorder("="))
    try:
        return share(value)
    except BufferError as error:
        if array is None or array.dtype.kind in "OUSMmV":
            raise invalid(f"input {arg.name}: {error}") from None
        return share(array.copy())  # it was not aligned


def _listed(arg: NodeArg, values: list[Any]) -> "np.ndarray[Any, Any]":
    _check_masks(values)
    try:
        return np.array(values, dtype=_dtype_for(arg))
    except (ValueError, TypeError, OverflowError) as error:
        raise RuntimeError(
            f"Could not create tensor from given input list: input {arg.name}: {error}"
        ) from None


def _check_masks(value: Any) -> None:
    """BufferError for a masked array, also in lists, which NumPy makes numbers of."""
    if not isinstance(value, (list, tuple)):
        _core._check_mask(value)
    elif not {*map(type, value)} <= _PLAIN:
        for each in value:
            _check_masks(each)


_PLAIN = {bool, int, float, str, bytes}


def _no_such_type(array: "np.ndarray[Any, Any]") -> Exception:
    return RuntimeError(
        f"Numpy_type {array.dtype.num} ({array.dtype}) can't be converted to MLDataType."
    )


def _not_an_array(arg: NodeArg, value: Any) -> Exception:
    """The error for None or a dict: onnxruntime reads them as an optional value or a
    map."""
    if value is None:
        return worded(Fail, f"Missing Input: {arg.name}")
    if isinstance(value, Mapping):
        try:
            for each in value.values():
                float(each)
        except (TypeError, ValueError) as error:
            return worded(Fail, str(error))
        return invalid(
            f"Unexpected input data type. Actual: (map) , expected: ({arg.type})"
        )
    return RuntimeError(f"Unable to handle object of type {type(value)}")


_BY_TYPE = {
    type_of(name): np.dtype(name)
    for name in (
        *("float32", "float64", "float16", "bool"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}

# NumPy's default integer has 32 bits in WebAssembly, and 64 where scripts are written:
# there np.array([1, 2]), arange() and argmax() make int64. The elements are the same,
# so there is no warning. An int32 array that a script requested looks the same.
_NARROW = (
    {"tensor(int64)": "tensor(int32)", "tensor(uint64)": "tensor(uint32)"}
    if np.dtype(int).itemsize == 4
    else {}
)


def _dtype_for(arg: NodeArg) -> "np.dtype[Any] | None":
    return _BY_TYPE.get(arg.type)


def _strings(arg: NodeArg, value: Any) -> dict[str, Any]:
    """Strings in JavaScript's form."""
    if isinstance(value, Tensor):
        raise invalid(
            f"Unexpected input data type. Actual: ({type_of(value.dtype)}) , expected: "
            "(tensor(string))"
        )
    if isinstance(value, (str, bytes)):
        raise RuntimeError(  # noqa: TRY004 - onnxruntime's
            f"input {arg.name} must be a list or an array of strings"
        )
    _check_masks(value)
    array = np.asarray(value)
    if array.dtype.kind == "T":
        raise _no_such_type(array)
    if array.dtype.kind not in "OUS":
        actual = type_of(array.dtype.name)
        raise invalid(
            f"Unexpected input data type. Actual: ({actual}) , expected: (tensor(string))"
        )
    _check_shape(arg, array.shape)
    data = [
        each.decode() if isinstance(each, bytes) else str(each) for each in array.flat
    ]
    return {"data": data, "dims": list(array.shape)}


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
