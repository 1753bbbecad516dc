"""ndarrays over the memory of tensors, and tensors over that of ndarrays.

For the dtypes that NumPy itself lacks. ml_dtypes has nearly all of them; without it
they are raw bytes, void items whose `dtype.metadata["dlpack"]` is the name.
"""

from typing import TYPE_CHECKING, Any

from . import _core
from ._dtype import element_bits, is_dtype, pack_dtype, split_name

if TYPE_CHECKING:
    import numpy as np

    from ._tensor import Tensor


def np_dtype(name: str) -> "np.dtype[Any] | None":
    """NumPy's own dtype of that name, or None; those of ml_dtypes do not count."""
    import numpy as np

    try:
        dtype = np.dtype(name)
    except TypeError:
        return None
    return dtype if dtype.isbuiltin == 1 else None


def view_array(tensor: "Tensor") -> "np.ndarray[Any, Any]":
    """An ndarray over the memory of a CPU tensor; lanes become a last axis.

    Packed sub-byte elements have no address, so that they are unpacked into a new array
    of one byte each, which is read-only: what is written there would be lost.
    """
    import numpy as np

    if np_dtype(tensor.dtype) is not None:
        return np.asarray(memoryview(tensor))
    scalar, lanes = split_name(tensor.dtype)
    bits = element_bits(scalar)
    dtype = _dtype_of(scalar)
    axis = (lanes,) if lanes > 1 else ()
    if bits < 8 and not tensor.padded:
        return _unpack(tensor, bits).view(dtype).reshape(tensor.shape + axis)
    step = lanes * dtype.itemsize
    memory, offset = _core._raw(tensor)
    return np.ndarray(
        tensor.shape + axis,
        dtype,
        memoryview(memory),
        offset,
        (
            *(stride * step for stride in tensor.strides),
            *(dtype.itemsize for _ in axis),
        ),
    )


def _dtype_of(scalar: str) -> "np.dtype[Any]":
    """The dtype of NumPy or ml_dtypes; raw bytes with the name where there is none."""
    import numpy as np

    own = np_dtype(scalar)
    if own is not None:
        return own
    try:
        import ml_dtypes

        scalar_type: type[np.generic] = getattr(ml_dtypes, scalar)
        return np.dtype(scalar_type)
    except (ImportError, AttributeError):
        itemsize = (element_bits(scalar) + 7) // 8
        return np.dtype(f"V{itemsize}", metadata={"dlpack": scalar})


def _unpack(tensor: "Tensor", bits: int) -> "np.ndarray[Any, Any]":
    """Each lane of packed elements in a byte of its own, the lowest bits first."""
    import numpy as np

    memory, _ = _core._raw(_core.from_dlpack(tensor, copy=True))
    count = tensor.size * split_name(tensor.dtype)[1]
    single = np.unpackbits(np.asarray(memory), bitorder="little", count=count * bits)
    array = np.packbits(single.reshape(count, bits), axis=1, bitorder="little")[:, 0]
    array.flags.writeable = False
    return array


def adopt_array(x: Any) -> "Tensor | None":
    """A Tensor over an array of a dtype that NumPy does not export; None for others.

    Sub-byte elements of ml_dtypes take a byte each, so that the tensor is `padded`.
    """
    dtype: Any = getattr(x, "dtype", None)
    if getattr(dtype, "isbuiltin", None) == 2:  # defined by another package
        name = dtype.name
    elif getattr(dtype, "kind", None) == "V" and dtype.fields is None:
        name = (dtype.metadata or {}).get("dlpack")
    else:
        return None
    if not is_dtype(name) or dtype.itemsize != (element_bits(name) + 7) // 8:
        return None
    padded = element_bits(name) < 8
    return _core._typed(x.view(f"u{dtype.itemsize}"), pack_dtype(name), padded)
