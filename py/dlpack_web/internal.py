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
    """BufferError for an array with masked elements, which have no value. Anything else
    has none.

    >>> internal.check_mask([1, 2])
    """
    _core._check_mask(values)


def converted(tensor: Tensor, dtype: DType, padded: bool = False) -> Tensor:
    """A row-major copy of a tensor in host memory with the elements as another dtype, for
    you to release. padded: whether elements of less than a byte take one each.

    BufferError: integers that do not fit, or a tensor on a GPU.

    >>> internal.converted(dlw.empty(3), dlw.DType("float16")).dtype
    'float16'
    """
    return _core._convert(tensor, dtype._packed, padded)


def describe(tensor: Tensor) -> str:
    """Shape, dtype and device of a tensor on any device, for messages.

    >>> internal.describe(dlw.empty(3))
    "Tensor(shape=(3,), dtype='float32', device='cpu')"
    """
    return tensor._facts_alone()


def is_row_major(tensor: Tensor) -> bool:
    """Whether the elements are contiguous, in row-major order, on any device.

    >>> internal.is_row_major(dlw.empty((2, 3)).permute_dims((1, 0)))
    False
    """
    return tensor._row_major()


def memory_of(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor in host memory; they keep the memory alive.

    BufferError: strided memory, or a tensor on a GPU.

    >>> len(internal.memory_of(dlw.empty(3)))
    12
    """
    return memoryview(_core._raw(tensor)[0])


def retyped(tensor: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A view of the bytes of a row-major tensor, on any device, with another shape and
    dtype, of whole bytes: a reference of its own, which you release.

    BufferError: fewer bytes, or strided memory.

    >>> internal.retyped(dlw.from_buffer(b"abcd"), (2,), dlw.DType("uint16")).shape
    (2,)
    """
    return _core._retyped(tensor, shape, dtype._packed)
