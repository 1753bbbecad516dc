"""onnxruntime's names for types, and NumPy's."""

from typing import Any

import numpy as np

from .._layout.dtype import DType, parse_dtype

# dtype, onnxruntime's name in "tensor(float)", ONNX's number.
_TABLE = [
    ("float32", "float", 1),
    ("uint8", "uint8", 2),
    ("int8", "int8", 3),
    ("uint16", "uint16", 4),
    ("int16", "int16", 5),
    ("int32", "int32", 6),
    ("int64", "int64", 7),
    ("string", "string", 8),
    ("bool", "bool", 9),
    ("float16", "float16", 10),
    ("float64", "double", 11),
    ("uint32", "uint32", 12),
    ("uint64", "uint64", 13),
    ("uint4", "uint4", 21),
    ("int4", "int4", 22),
]
_TYPES = {dtype: f"tensor({word})" for dtype, word, _ in _TABLE}
_NUMBERS = {dtype: number for dtype, _, number in _TABLE}
_DTYPES = {number: dtype for dtype, _, number in _TABLE}


def type_of(dtype: str) -> str:
    """ "tensor(float)" for "float32"; the dtype's own name if onnxruntime-web lacks
    it."""
    return _TYPES.get(str(dtype), f"tensor({dtype})")


def number_of(dtype: str) -> int:
    """`TensorProto.DataType` of a dtype; RuntimeError if onnxruntime lacks it."""
    try:
        return _NUMBERS[str(dtype)]
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
    if element_type in (int, "int"):
        return DType("int64")
    try:
        wanted = parse_dtype(element_type)
    except TypeError:
        name = np.dtype(element_type).newbyteorder("=").name  # "f4", ">f4"
        number_of(name)
        wanted = DType(name)
    number_of(wanted)
    return wanted
