"""The C core (wasm/module.c, wasm/object.c). Names without an underscore are public in
dlpack_web."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from typing_extensions import CapsuleType

# What the functions make and take, for type checkers: the class of this name is its base.
from ._tensor.tensor import Tensor as Tensor

class CopyError(BufferError, ValueError): ...
class DeviceLostError(BufferError): ...
class ReleasedError(BufferError): ...

class KernelError(BufferError):
    label: str
    line: int | None
    filename: str | None
    lineno: int | None

class _Tensor:
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    _js: object
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def byte_offset(self) -> int: ...
    @property
    def padded(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def released(self) -> bool: ...
    @property
    def _dtype(self) -> int: ...
    # The object whose buffer the memory is; True for a DLPack producer's memory, else
    # False.
    @property
    def _owner(self) -> object: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def release(self) -> None: ...
    # The class of an exception that ended a request for a buffer; returned only once.
    def _interrupt(self) -> type[BaseException] | None: ...

class _Producer(Protocol):
    def __dlpack__(self) -> CapsuleType: ...

def from_dlpack(
    x: _Producer | CapsuleType,
    /,
    *,
    device: str | tuple[int, int] | None = None,
    copy: bool | None = None,
    dtype: Any = None,
) -> Tensor: ...
def from_buffer(obj: object, /) -> Tensor: ...
def live_tensors() -> int: ...

# from_dlpack for a device (None: any), and with memory of any alignment if requested.
def _from_dlpack_on(
    x: object, device: tuple[int, int] | None, copy: bool | None, any_alignment: bool, /
) -> Tensor: ...

# A hold on any object that shares memory, of any alignment: only to copy from.
def _hold(x: object, /) -> Tensor: ...

# BufferError for a numpy.ma.MaskedArray with a masked element. What makes an array of x
# before it comes here loses the mask, and must call this first.
def _check_mask(x: object, /) -> None: ...
def _empty(shape: tuple[int, ...], dtype: int, padded: bool, /) -> Tensor: ...

# A view of some elements; the offset is that of element 0. BufferError beyond the
# tensor.
def _view(
    tensor: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, /
) -> Tensor: ...

# The bytes of a row-major tensor as elements of another dtype, which has whole bytes: a
# view. BufferError if it has fewer bytes.
def _retyped(tensor: Tensor, shape: tuple[int, ...], dtype: int, /) -> Tensor: ...

# The memory as one axis of uint8, and the offset of element 0 in bytes.
def _raw(tensor: Tensor, /) -> tuple[Tensor, int]: ...

# The buffer's memory with another dtype of the same width; bytes along one axis as a
# dtype of any width that divides them; or None if elements would be misaligned.
def _typed(buffer: object, dtype: int, padded: bool, /) -> Tensor | None: ...

# A row-major copy with another dtype.
def _convert(tensor: Tensor, dtype: int, padded: bool, /) -> Tensor: ...

# The dtypes of one lane by name.
def _dtypes() -> dict[str, int]: ...

# The Tensors that are not released.
def _alive() -> list[Tensor]: ...

# gc.get_referrers(), with the types of tuples and frozensets in their place: another
# thread may be constructing these, which would fail with one more reference.
def _referrers(x: object, /) -> list[Any]: ...
def _bind(
    tensor_type: type[Tensor],
    explain: Callable[[object, BaseException, bool, bool], BaseException | Tensor],
    place: Callable[[object, Any, bool | None, Any], Tensor],
    /,
) -> None: ...

# The Tensor that takes over JavaScript's hold with that handle. _raise: the exception
# that the last failing function for JavaScript kept, if there is one.
def _take(handle: int, /) -> Tensor: ...
def _raise() -> None: ...

# Waits for a promise that JavaScript keeps under a number; raises JavaScript's errors.
# Returns the handle of a result for _take, or a number that is not a handle. Only where
# Pyodide can suspend Python; other Python code runs meanwhile.
def _wait(number: int, /) -> int: ...

# A kernel's arguments: the device id, and the WebGPU tensors, and numbers as floats.
def _arguments(*args: object) -> tuple[int, tuple[Tensor | float, ...]]: ...

# The elements, and which of axis 0 are valid, a Tensor of bool, or None if all are. The
# capsules (of an ArrowArray or an ArrowDeviceArray) are moved, the stream is released.
# axes_of(metadata, width, room): the extents that the metadata of fixed_shape_tensor
# gives to lists of `width` elements, at most `room`, and the order of the axes.
type _AxesOf = Callable[[bytes, int, int], tuple[tuple[int, ...], tuple[int, ...]]]

def _from_arrow_array(
    schema: object, array: object, column: str | None, axes_of: _AxesOf, /
) -> tuple[Tensor, Tensor | None]: ...
def _from_arrow_stream(
    stream: object, column: str | None, axes_of: _AxesOf, /
) -> tuple[Tensor, Tensor | None]: ...

# The capsules of an ArrowSchema and an ArrowArray; axes after the first are fixed-size
# lists. valid: a Tensor of bool, false where an element of axis 0 is null. requested: a
# capsule of an ArrowSchema, or None; BufferError if it is of another type.
def _to_arrow(
    values: Tensor, valid: Tensor | None, requested: object, /
) -> tuple[CapsuleType, CapsuleType]: ...
def _uncount(tensor: Tensor, /) -> None: ...

# _run makes JavaScript run a kernel, without Pyodide's calls, which cost more than all of
# our own work. False: it failed, and JavaScript kept the error. key: the arguments and
# options of the user's call, (args, *options), under which JavaScript caches it; () for
# none. _again runs the call that was cached under the same key, without a check: the same
# tensors and options, and any numbers where numbers were. False: nothing happened, and the
# call takes the checked way; a kernel of 0 has none. _pass: the result of JavaScript's
# function(*given), which finds the call of a kernel where _run has it.
def _again(kernel: int, key: tuple[Any, ...], /) -> bool: ...
def _run(
    kernel: int,
    site: int,
    workgroups: tuple[int, ...],
    args: tuple[Tensor | float, ...],
    key: tuple[Any, ...],
    /,
) -> bool: ...
def _pass(
    function: Any,
    given: tuple[Any, ...],
    site: int,
    workgroups: tuple[int, ...],
    args: tuple[Tensor | float, ...],
    /,
) -> Any: ...

# Only outside of a browser, where _backends/model has the GPUBuffers. _wrap: a Tensor
# over a GPU handle, which takes over a reference to it, but not if it raises (strides
# None: row-major). _gpu: the handle of a Tensor. _on_gpu_drop: the function to call with
# each handle whose last tensor is gone, on any thread. _chunk: elements packed and
# converted, from `first` on: their number and memory, which is the tensor's or `scratch`.
# All but the last are whole words.
def _wrap(
    gpu: int,
    device_id: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: int,
    padded: bool,
    read_only: bool,
    byte_offset: int,
    /,
) -> Tensor: ...
def _gpu(tensor: Tensor, /) -> int: ...
def _on_gpu_drop(function: Callable[[int], object], /) -> None: ...
def _chunk(
    tensor: Tensor, dtype: int, first: int, scratch: bytearray, /
) -> tuple[int, memoryview]: ...
