"""The repr and the notebook display of a Tensor: elements, properties and a picture."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._backends import backend_of, is_loaded
from .._core import ReleasedError
from . import show
from .facts import Facts

if TYPE_CHECKING:
    import numpy as np

# Bytes that a picture may read back from a GPU.
_PICTURE_BYTES = 256 << 10


def elements(tensor: Facts) -> str:
    """The elements for a repr, if the CPU reads them at once; else ""."""
    packed = tensor.dtype.bits < 8 and tensor.size > show.SHOWN  # all would be unpacked
    if not tensor.device.is_host or packed:
        return ""
    try:
        text = show.elements(tensor.numpy(), "Tensor(")
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - no NumPy, a dtype that it lacks: facts will do
        text = ""
    return text and f"{text}, "


def table(tensor: Facts) -> dict[str, str]:
    """The properties, by their names in a notebook."""
    return {
        "dtype": tensor.dtype + (", a byte each" if tensor.padded else ""),
        "shape": str(tensor.shape),
        "strides": f"{tensor.strides}, in elements",
        "device": str(tensor.device),
        "size": show.size_of(tensor.nbytes),
        "access": "read-only" if tensor.read_only else "read and write",
        "memory of": memory_of(tensor),
    }


def memory_of(tensor: Facts) -> str:
    """The owner of the memory."""
    if not tensor.device.is_host:
        pooled = False
        with suppress(ReleasedError):  # the handle is of no GPUBuffer known here
            pooled = is_loaded() and backend_of(tensor).is_pooled(tensor)
        return "dlpack_web, in its pool" if pooled else "the creator of the GPUBuffer"
    owner = tensor._owner
    if isinstance(owner, bool):
        return "another DLPack producer" if owner else "dlpack_web"
    return f"{type(owner).__module__}.{type(owner).__qualname__}"


def picture(tensor: Facts) -> "np.ndarray[Any, Any] | str":
    """The elements to show, or why they are not shown."""
    if tensor.size == 0:
        return "no elements"
    if not tensor.device.is_host:
        if tensor.nbytes > _PICTURE_BYTES:
            return "on the GPU, and too large to read back only for display: await t.to_host()"
        if not backend_of(tensor).can_block():
            return "on the GPU: await t.to_host()"
    try:
        return tensor.numpy()
    except (BufferError, ImportError) as error:
        if tensor.released:
            raise
        return str(error)
