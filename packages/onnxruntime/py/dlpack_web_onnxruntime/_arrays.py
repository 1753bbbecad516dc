"""onnxruntime's names for types, and arrays, lists and strings in the form that it takes."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dlpack_web import DType, Tensor
from dlpack_web.internal import check_mask, parse_dtype, share

from ._generated import NUMPY, ONNX, ONNX_WORDS
from ._state import Fail, invalid, unsupported, worded

type Array = np.ndarray[Any, Any]

_DTYPES = {number: dtype for dtype, number in ONNX.items()}


def type_of(dtype: str) -> str:
    """ "tensor(float)" for "float32"; the dtype's own name where there is no other."""
    return f"tensor({ONNX_WORDS.get(str(dtype), dtype)})"


def number_of(dtype: str) -> int:
    """`TensorProto.DataType` of a dtype; RuntimeError if onnxruntime lacks it."""
    try:
        return ONNX[str(dtype)]
    except KeyError:
        raise RuntimeError(f"onnxruntime-web has no tensors of {dtype}") from None


def dtype_meant(element_type: Any) -> DType:
    """The dtype for a NumPy type, or one of ONNX's numbers; int is int64, as where
    scripts are written. TypeError for no type; RuntimeError for one that onnxruntime
    lacks."""
    if isinstance(element_type, int):
        name = _DTYPES.get(element_type)
        if name is None or name == "string":
            raise RuntimeError(f"tensor type {element_type} is not supported")
        return DType(name)
    # Not ==: NumPy's int32 equals int where that has 32 bits.
    if element_type is int or (type(element_type) is str and element_type == "int"):
        return DType("int64")
    try:
        wanted = parse_dtype(element_type)
    except TypeError:
        name = np.dtype(element_type).newbyteorder("=").name  # "f4", ">f4"
        number_of(name)
        wanted = DType(name)
    number_of(wanted)
    return wanted


# By onnxruntime's names.
DTYPES = {type_of(name): np.dtype(name) for name in NUMPY}

# NumPy's default integer has 32 bits in WebAssembly, and 64 where scripts are written:
# there np.array([1, 2]), arange() and argmax() make int64. The elements are the same,
# so there is no warning. An int32 array that a script requested looks the same.
_NARROW = {"int64": "int32", "uint64": "uint32"} if np.dtype(int).itemsize == 4 else {}


def _is_narrow(dtype: Any, wanted: Any) -> bool:
    return str(dtype) == _NARROW.get(str(wanted))


def widened(tensor: Tensor, wanted: Any) -> Tensor:
    """A Tensor with the desktop's default integers instead of NumPy's here, if it has
    those in memory and `wanted` is that dtype."""
    if tensor.device.is_host and _is_narrow(tensor.dtype, wanted):
        return shared(tensor.numpy(), wanted)
    return tensor


def shared(array: Array, wanted: Any = None) -> Tensor:
    """A hold on the memory of an array; a copy if it is misaligned or of another byte
    order, or if its elements are NumPy's default integers for those of `wanted`."""
    check_masks(array)
    array = np.asarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if _is_narrow(array.dtype, wanted):
        array = array.astype(str(wanted))
    return share(array if array.flags.aligned else array.copy())


def check_masks(values: Any) -> None:
    """BufferError for masked elements of an array, or of arrays in a list."""
    if not isinstance(values, (list, tuple)):
        check_mask(values)
    else:
        kinds = set(map(type, values))
        if any(issubclass(kind, (np.ma.MaskedArray, list, tuple)) for kind in kinds):
            for each in values:
                check_masks(each)


def strings_of(
    name: str, values: Any, returned: bool
) -> "tuple[list[str], tuple[int, ...]]":
    """The strings of a list or array, and its shape. returned: they may be results."""
    check_masks(values)
    is_list = isinstance(values, list)
    array = np.array(values, object) if is_list else np.asarray(values)
    if array.dtype.kind == "T":
        raise no_such_type(array)
    if array.dtype.kind not in "OUS":
        actual = type_of(array.dtype.name)
        raise invalid(
            f"Unexpected input data type. Actual: ({actual}) , expected: (tensor(string))"
        )
    found = array.ravel().tolist()
    if is_list and any(isinstance(each, (list, tuple)) for each in found):
        raise RuntimeError(
            f"Could not create tensor from given input list: input {name}: its lists have "
            "different lengths"
        )
    try:
        # Objects become str(), also bytes among them, as in native onnxruntime.
        texts = [
            each.decode() if array.dtype.kind == "S" else str(each) for each in found
        ]
        check_texts(texts, f"input {name}", _CHANGED if returned else _CUT)
    except UnicodeEncodeError as error:
        if array.dtype.kind == "U":  # onnxruntime's class for these
            raise worded(Fail, str(error)) from None
        raise
    return texts, array.shape


# What onnxruntime-web changes in strings that it gets, and in those that it returns.
_CUT = {"\0": ("NUL", "cut off there", r"\0")}
_CHANGED = {**_CUT, "\ufeff": ("U+FEFF", "leave out of results", r"\ufeff")}


def check_texts(
    texts: Iterable[str], place: str, changed: Mapping[str, tuple[str, ...]] = _CUT
) -> None:
    """NotImplemented for a string that onnxruntime-web would change, such as one with
    NUL; UnicodeEncodeError for one with a lone surrogate, which UTF-8 cannot have."""
    for text in texts:
        for character, (name, becomes, escape) in changed.items():
            if character in text:
                raise unsupported(
                    f"{place} has a string with {name}, {_cut(text)}, which "
                    f"onnxruntime-web would {becomes}: remove the {name}, for example "
                    f"with text.replace('{escape}', '')"
                )
        if text.isascii():
            continue
        try:
            text.encode()
        except UnicodeEncodeError as error:
            error.reason += (
                f" in {place}, {_cut(text)}: strings must be valid Unicode, for example "
                "text.encode('utf-8', 'replace').decode()"
            )
            raise


def _cut(text: str) -> str:
    return ascii(text if len(text) < 60 else f"{text[:60]}…")


def no_such_type(array: Array) -> Exception:
    """The error for an array of a dtype that no model has."""
    return RuntimeError(
        f"Numpy_type {array.dtype.num} ({array.dtype}) can't be converted to MLDataType."
    )
