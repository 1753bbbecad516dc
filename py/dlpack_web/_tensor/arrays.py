"""ndarrays over the memory of tensors, and tensors over that of ndarrays.

For dtypes that NumPy itself lacks. ml_dtypes has nearly all of them; without it
elements are raw bytes, void items with the name in `dtype.metadata["dlpack"]`.
"""

from math import prod
from typing import Any

from .. import _core
from .._layout.dtype import Array, DType, dtype_of, element_dtype, is_scalar, np_dtype


def view_array(tensor: _core.Tensor) -> Array:
    """An ndarray over the memory of a CPU tensor; lanes become a last axis.

    Packed elements that share bytes have no address, so they are unpacked into a new
    array of whole bytes. It is read-only, because writes would be lost.
    """
    import numpy as np

    dtype = dtype_of(tensor._dtype)
    if np_dtype(dtype) is not None:
        return np.asarray(memoryview(tensor))
    scalar = DType(dtype.scalar)
    np_scalar = element_dtype(dtype)
    axis = (dtype.lanes,) if dtype.lanes > 1 else ()
    if len(tensor.shape + axis) > 64:
        raise BufferError(
            f"NumPy supports at most 64 axes, and the lanes of {dtype} need one more: "
            "reshape the tensor first"
        )
    if scalar.bits % 8 and not tensor.padded:
        array = _unpack(tensor, dtype).view(np_scalar)
        array.flags.writeable = False
        return array.reshape(tensor.shape + axis)
    step = dtype.lanes * np_scalar.itemsize
    memory, offset = _core._raw(tensor)
    return np.ndarray(
        tensor.shape + axis,
        np_scalar,
        memoryview(memory),
        offset,
        byte_strides(tensor, step) + (np_scalar.itemsize,) * len(axis),
    )


def byte_strides(tensor: _core.Tensor, step: int) -> tuple[int, ...]:
    """Strides in bytes, `step` for each element. Strides of axes of one element are not
    used, and may be larger than NumPy supports."""
    axes = zip(tensor.shape, tensor.strides, strict=True)
    return tuple(stride * step if extent > 1 else step for extent, stride in axes)


def _unpack(tensor: _core.Tensor, dtype: DType) -> Array:
    """Each lane of packed elements in bytes of its own, the lowest bits first."""
    import numpy as np

    packed = _core.from_dlpack(tensor, copy=True)
    memory, _ = _core._raw(packed)
    count = prod(tensor.shape) * dtype.lanes
    # A memoryview raises our error; NumPy would drop that of a Tensor.
    octets = np.asarray(memoryview(memory), np.uint8)
    bits = np.unpackbits(octets, bitorder="little", count=count * dtype.bits)
    rows = bits.reshape(count, dtype.bits)
    return np.packbits(rows, axis=1, bitorder="little")


def is_raw(array: Array) -> bool:
    """Whether elements are raw bytes, or structures."""
    return array.dtype.kind == "V" and not array.dtype.isbuiltin


def numbers(array: Array) -> Array:
    """The array, unless it has raw bytes, which NumPy would convert as text."""
    if is_raw(array):
        name = (array.dtype.metadata or {}).get("dlpack")
        raise TypeError(
            f"NumPy has only the bytes of {name}: ml_dtypes has most dtypes that NumPy lacks"
        )
    return array


def adopt_array(x: Any, copied: bool, borrowing: bool) -> _core.Tensor | None:
    """A Tensor over an array of a dtype that NumPy does not export; None for others, and
    for subclasses whose own `__dlpack__` refused, unless it is not asked (`borrowing`).
    With `copied` a misaligned array is copied, else it raises BufferError.

    Sub-byte elements of ml_dtypes take a byte each: the tensor is `padded`.
    """
    dtype = named_dtype(getattr(x, "dtype", None))
    if dtype is None:
        return None
    import numpy as np

    own = isinstance(x, np.ndarray) and type(x).__dlpack__ is not np.ndarray.__dlpack__
    if own and not borrowing:
        return None
    raw = x.view(f"u{dtype.itemsize}")
    if raw.shape != x.shape:  # JAX's sub-byte elements share bytes
        return None
    if copied:
        raw = np.require(raw, requirements="A")
    return _core._typed(raw, dtype._packed, dtype.bits < 8)


def named_dtype(np_dtype: Any) -> DType | None:
    """The dtype for one of NumPy's that NumPy does not export; None for others."""
    if getattr(np_dtype, "isbuiltin", None) == 2:  # defined by another package
        name = np_dtype.name
    elif getattr(np_dtype, "kind", None) == "V" and np_dtype.fields is None:
        name = (np_dtype.metadata or {}).get("dlpack")
    else:
        return None
    dtype = DType(name) if is_scalar(name) else None
    # Elements of more bits than whole bytes have no padded form.
    is_whole = dtype is not None and (dtype.bits < 8 or dtype.bits % 8 == 0)
    fits = dtype is not None and is_whole and np_dtype.itemsize == dtype.itemsize
    return dtype if fits and (np_dtype.isnative or np_dtype.itemsize == 1) else None
