"""DLPack's dtypes by name, and the other spellings that are accepted.

A dtype is passed as one integer, the four bytes of a `DLDataType`: code, bits and, from
bit 16 on, lanes. Only the C core knows which dtypes exist.
"""

import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Self

from .. import _core
from . import NPY, DLDeviceType
from .text import shown

if TYPE_CHECKING:
    import builtins

    import numpy as np

type Array = np.ndarray[Any, Any]

_PACKED = _core._dtypes()
_NAMES = {packed: name for name, packed in _PACKED.items()}
# Python's number types as NumPy maps them, and common short names.
_PYTHON = {
    bool: "bool",
    int: f"int{sys.maxsize.bit_length() + 1}",
    float: "float64",
    complex: "complex128",
}
_MEANT = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "i32": "int32",
    "i64": "int64",
    "u32": "uint32",
    "u64": "uint64",
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "float": "float32",
    "int": "int32",
    "complex": "complex64",
    # struct's codes, and NumPy's without the ambiguous ones.
    **{code: name for name, code in NPY.items() if code not in ("i8", "u8")},
    "?": "bool",
    "b": "int8",
    "B": "uint8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "Q": "uint64",
    "e": "float16",
    "f": "float32",
    "d": "float64",
}


class DType(str):
    """A dtype's name, in DLPack's and the array API's words, with the dtype's
    properties.

    It equals the plain name, prints as it, and NumPy accepts it. It also equals objects
    for the same dtype: np.float32, np.dtype("float32"), torch.float32. DType(x) takes the
    name, or such an object, or a number type of Python.

    >>> dtype = dlw.empty(3).dtype
    >>> dtype == "float32", dtype == np.float32, np.dtype(dtype)
    (True, True, dtype('float32'))
    """

    __slots__ = ("_packed",)
    _packed: int

    def __new__(cls, name: Any) -> Self:
        text = name if isinstance(name, str) else _name_of(name)
        dtype = super().__new__(cls, text)
        dtype._packed = _pack(text)
        return dtype

    __hash__ = str.__hash__
    __ne__ = object.__ne__

    def __eq__(self, other: object) -> bool:
        kind = type(other)
        if not issubclass(kind, str):
            try:
                if not (issubclass(kind, type) or "dtype" in kind.__name__.lower()):
                    return (
                        NotImplemented  # a Path or a file may have the name of a dtype
                    )
                other = parse_dtype(other)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - its attributes are foreign code
                return NotImplemented
        return str.__eq__(self, other)

    @property
    def name(self) -> str:
        """The name as a plain str: "float32", or "float32x4" with lanes.

        >>> dlw.DType("float32x4").name
        'float32x4'
        """
        return str(self)

    @property
    def code(self) -> int:
        """DLPack's `DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, …

        >>> dlw.DType("bfloat16").code
        4
        """
        return self._packed & 0xFF

    @property
    def bits(self) -> int:
        """Bits of one lane; a complex number counts both parts.

        >>> dlw.DType("complex64").bits
        64
        """
        return self._packed >> 8 & 0xFF

    @property
    def lanes(self) -> int:
        """Numbers in one element: 1, or more for vectors.

        >>> dlw.DType("float32x4").lanes
        4
        """
        return self._packed >> 16

    @property
    def itemsize(self) -> int:
        """Bytes of a single element.

        >>> dlw.DType("float32x4").itemsize, dlw.DType("int4").itemsize
        (16, 1)
        """
        return -(-self.bits * self.lanes // 8)

    @property
    def scalar(self) -> str:
        """The name of one lane.

        >>> dlw.DType("float32x4").scalar
        'float32'
        """
        return _NAMES[self._packed & 0xFFFF | 1 << 16]

    @property
    def kind(self) -> str:
        """NumPy's kind letter, which libraries read: "b" bool, "i", "u", "f" or "c";
        "V" for dtypes that NumPy lacks.

        >>> dlw.empty(3).dtype.kind, dlw.empty(3, "bfloat16").dtype.kind
        ('f', 'V')
        """
        return NPY.get(self.scalar, "V")[0]

    @property
    def type(self) -> "builtins.type[np.generic]":
        """The scalar class of one lane, from NumPy or ml_dtypes; np.void if neither has
        one. Needs NumPy.

        >>> dlw.empty(3).dtype.type
        <class 'numpy.float32'>
        """
        return element_dtype(self).type

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        """(code, bits, lanes), for libraries that use DLPack's dtypes.

        >>> dlw.empty(3, "uint8").dtype.__dlpack_data_type__()
        (1, 8, 1)
        """
        return self.code, self.bits, self.lanes

    if not TYPE_CHECKING:  # type checkers find these mistakes themselves

        def __getattr__(self, name: str) -> NoReturn:
            message = f"'DType' object has no attribute {name!r}"
            numpy = sys.modules.get("numpy")
            if numpy is not None and hasattr(numpy.dtype, name):
                message += f": a DType is a str; use t.numpy().dtype.{name} or np.dtype(t.dtype).{name}"
            raise AttributeError(message, name=name, obj=self)


@cache
def dtype_of(packed: int) -> DType:
    """The DType of the C core's integer."""
    lanes = packed >> 16
    scalar = _NAMES[packed & 0xFFFF | 1 << 16]
    return DType(scalar if lanes == 1 else f"{scalar}x{lanes}")


def misfit_of(source: _core.Tensor, target: _core.Tensor) -> str:
    """Why elements cannot be written over others as they are; "" if they can."""
    shape = source.shape == target.shape
    dtype = source._dtype == target._dtype
    if shape and dtype and source.padded == target.padded:
        return ""
    why = "shape and dtype must be the same"
    if shape and dtype:
        why = f"{dtype_of(source._dtype)} is packed in one and padded in the other"
    on_host = source.__dlpack_device__()[0] != DLDeviceType.kDLWebGPU
    converts = shape and on_host and _can_convert(source._dtype, target._dtype)
    return f"{why}; convert=True converts" if converts else why


def _can_convert(source: int, target: int) -> bool:
    """Whether C converts between two dtypes. For messages: it makes a tensor."""
    try:
        _core._convert(_core._empty((0,), source, False), target, False)
    except BufferError:
        return False
    return True


def is_scalar(name: object) -> bool:
    """Whether DLPack has a dtype of one lane with that name."""
    return name in _PACKED


def _pack(name: str) -> int:
    """The integer for a name; TypeError lists the valid names."""
    packed = _PACKED.get(name)
    if packed is not None:
        return packed
    scalar, _, lanes = name.rpartition("x")
    if scalar in _PACKED and _is_count(lanes):
        return _PACKED[scalar] & 0xFFFF | int(lanes) << 16
    meant = _MEANT.get(name.lstrip("<=|@"))
    hint = f"; did you mean {meant!r}?" if meant else ""
    raise TypeError(
        f"unknown dtype {shown(name)}: 'bool', 'int1' to 'int64', 'uint1' to 'uint64', "
        "'float16' to 'float64', 'complex32' to 'complex128', 'bfloat16', "
        f"'bcomplex32', DLPack's floats of 8, 6 and 4 bits, and vectors such as 'float32x4' are supported{hint}"
    )


def _is_count(lanes: str) -> bool:
    return bool(re.fullmatch("[1-9][0-9]{0,4}", lanes)) and 1 < int(lanes) < 1 << 16


def parse_dtype(dtype: Any) -> DType:
    """The dtype for a name, a number type of Python, or an object with a name, such as
    np.float32 or a dtype of NumPy, PyTorch or JAX. TypeError for anything else."""
    return dtype if isinstance(dtype, DType) else DType(dtype)


def _name_of(dtype: Any) -> str:
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    if getattr(dtype, "isnative", True) is False:
        raise TypeError(
            f"dtype {dtype!s} is not in native byte order, which DLPack requires: use "
            f"{getattr(dtype, 'name', dtype)!r}"
        )
    for name in (getattr(dtype, "name", None), getattr(dtype, "__name__", None)):
        if isinstance(name, str):
            return name.removesuffix("_")  # np.bool_ in NumPy 1
    torch_name = str(dtype).removeprefix("torch.")
    if is_scalar(torch_name):
        return torch_name
    raise TypeError(
        "dtype must be a name such as 'float32', np.float32, float, or an array's dtype, "
        f"not {dtype!r}"
    )


def np_dtype(dtype: DType) -> "np.dtype[Any] | None":
    """NumPy's own dtype of that name, or None; those of ml_dtypes do not count."""
    import numpy as np

    try:
        found = np.dtype(str(dtype))
    except TypeError:
        return None
    return found if found.isbuiltin == 1 else None


def element_dtype(dtype: DType) -> "np.dtype[Any]":
    """The dtype of one lane in NumPy or ml_dtypes, else bytes with its name."""
    import numpy as np

    scalar = DType(dtype.scalar)
    own = np_dtype(scalar)
    if own is not None:
        return own
    try:
        import ml_dtypes

        scalar_type: type[np.generic] = getattr(ml_dtypes, scalar)
        return np.dtype(scalar_type)
    except (ImportError, AttributeError):
        return np.dtype(f"V{scalar.itemsize}", metadata={"dlpack": str(scalar)})
