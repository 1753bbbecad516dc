"""The names by which packages beside dlpack_web use it besides its public ones, without a
promise between minor versions: such a package requires the same version.

`dlpack_web.backends` has those about GPUs.
"""

from . import _core
from ._backends import javascript
from ._backends.calls import Call, calling, refuse_recorded
from ._files.headers import facts_of, is_broken, read_header, tag_of, write_header
from ._layout.dtype import DType, parse_dtype
from ._layout.text import type_of
from ._tensor.device import CPU, default_device, parse_device
from ._tensor.tensor import Tensor, share

__all__ = [
    "CPU",
    "Call",
    "Kept",
    "block_on",
    "calling",
    "calls_of",
    "check_mask",
    "converted",
    "default_device",
    "describe",
    "facts_of",
    "finish",
    "invoke",
    "is_broken",
    "is_row_major",
    "memory_of",
    "parse_device",
    "parse_dtype",
    "read_header",
    "receive",
    "receive_waiting",
    "refuse_recorded",
    "retyped",
    "share",
    "tag_of",
    "type_of",
    "wait_for",
    "write_header",
]
# In Pyodide; elsewhere each says so.
Kept = javascript.Kept
block_on = javascript.block_on
calls_of = javascript.calls_of
finish = javascript.finish
invoke = javascript.invoke
receive = javascript.receive
receive_waiting = javascript.receive_waiting
wait_for = javascript.wait_for


def check_mask(values: object) -> None:
    """Checks that an array has no masked elements, which have no value.

    Parameters
    ----------
    values : object
        An array, or anything else, which has none.

    Raises
    ------
    BufferError
        It has some.

    Examples
    --------
    >>> internal.check_mask([1, 2])
    """
    _core._check_mask(values)


def converted(tensor: Tensor, dtype: DType, padded: bool = False) -> Tensor:
    """A copy of the elements as another dtype.

    Parameters
    ----------
    tensor : Tensor
        In host memory.
    dtype : DType
        Of the result.
    padded : bool
        Whether elements of less than a byte take one each.

    Returns
    -------
    Tensor
        Row-major; yours to release.

    Raises
    ------
    BufferError
        Integers that do not fit, a tensor on a GPU.

    Examples
    --------
    >>> internal.converted(dlw.empty(3), dlw.DType("float16")).dtype
    'float16'
    """
    return _core._convert(tensor, dtype._packed, padded)


def describe(tensor: Tensor) -> str:
    """Shape, dtype and device of a tensor, for messages.

    Parameters
    ----------
    tensor : Tensor
        On any device.

    Returns
    -------
    str

    Examples
    --------
    >>> internal.describe(dlw.empty(3))
    "Tensor(shape=(3,), dtype='float32', device='cpu')"
    """
    return tensor._facts_alone()


def is_row_major(tensor: Tensor) -> bool:
    """Whether the elements are contiguous, in row-major order.

    Parameters
    ----------
    tensor : Tensor
        On any device.

    Returns
    -------
    bool

    Examples
    --------
    >>> internal.is_row_major(dlw.empty((2, 3)).permute_dims((1, 0)))
    False
    """
    return tensor._row_major()


def memory_of(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor in host memory.

    Parameters
    ----------
    tensor : Tensor
        In host memory, contiguous.

    Returns
    -------
    memoryview
        Keeps the memory alive.

    Raises
    ------
    BufferError
        Strided memory, a tensor on a GPU.

    >>> len(internal.memory_of(dlw.empty(3)))
    12
    """
    return memoryview(_core._raw(tensor)[0])


def retyped(tensor: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A tensor over the same bytes with another shape and dtype.

    Parameters
    ----------
    tensor : Tensor
        Row-major, on any device.
    shape : tuple of int
        Of the result.
    dtype : DType
        Of whole bytes.

    Returns
    -------
    Tensor
        A reference of its own, which you release.

    Raises
    ------
    BufferError
        Fewer bytes, strided memory.

    Examples
    --------
    >>> internal.retyped(dlw.from_buffer(b"abcd"), (2,), dlw.DType("uint16")).shape
    (2,)
    """
    return _core._retyped(tensor, shape, dtype._packed)
