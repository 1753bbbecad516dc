"""The C core (wasm/module.c, wasm/object.c). What has no underscore here is public in
dlpack_web. Tensors that it makes are dlpack_web.Tensor, its subclass in _tensor/tensor.py."""

from collections.abc import Callable
from typing import Any, ClassVar

from typing_extensions import CapsuleType

class CopyError(BufferError, ValueError): ...
class DeviceLostError(BufferError): ...
class ReleasedError(BufferError): ...

class KernelError(BufferError):
    label: str
    line: int | None
    filename: str | None
    lineno: int | None

class Tensor:
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    _js: object
    _validity: Tensor
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
    # The object whose buffer the memory is; True for a DLPack producer's, else False.
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
    # The class of an exception that ended a request for a buffer, told once.
    def _interrupt(self) -> type[BaseException] | None: ...

# _tensor/tensor.py says what these three take and return.
def from_dlpack(x: object, /, **options: Any) -> Tensor: ...
def from_buffer(obj: object, /) -> Tensor: ...
def live_tensors() -> int: ...

# from_dlpack with a device asked for (None: none); memory of any alignment where asked.
def _from_dlpack_on(
    x: object,
    device: tuple[int, int] | None,
    copy: bool | None,
    any_alignment: bool,
    /,
) -> Tensor: ...

# A hold on anything that shares memory, of any alignment: only to copy from it.
def _hold(x: object, /) -> Tensor: ...
def _empty(shape: tuple[int, ...], dtype: int, padded: bool, /) -> Tensor: ...

# Some of the elements; the offset is that of element 0. BufferError beyond the tensor.
def _view(
    tensor: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, /
) -> Tensor: ...

# The memory as one axis of uint8, and where element 0 is in it, in bytes.
def _raw(tensor: Tensor, /) -> tuple[Tensor, int]: ...

# The buffer's memory with another dtype of its width; bytes along one axis, of any width
# that divides them, or None where elements would be misaligned.
def _typed(buffer: object, dtype: int, padded: bool, /) -> Tensor | None: ...

# A row-major copy as another dtype.
def _convert(tensor: Tensor, dtype: int, /) -> Tensor: ...

# The dtypes of one lane by name.
def _dtypes() -> dict[str, int]: ...

# The Tensors that are alive and not released.
def _alive() -> list[Tensor]: ...

# gc.get_referrers(), with the types of tuples and frozensets in their place: those may be
# under construction in another thread, which would fail if it saw one more reference.
def _referrers(x: object, /) -> list[Any]: ...
def _bind(
    tensor_type: type[Tensor],
    explain: Callable[[object, BaseException, bool], BaseException | Tensor],
    place: Callable[[object, Any, bool | None, Any], Tensor],
    /,
) -> None: ...

# Holds that JavaScript has, by handle.
def _take(handle: int, /) -> Tensor: ...
def _raise() -> None: ...

# Waits for a promise that JavaScript has by a number, with the errors of JavaScript.
def _wait(number: int, /) -> None: ...

# What a kernel is given: (device id, bits of those that are numbers, floats and addresses).
def _arguments(*args: object) -> tuple[int, int, tuple[float, ...]]: ...

# The elements, and which of them are valid where some are not.
def _from_arrow_array(
    schema: object, array: object, column: str | None, /
) -> tuple[Tensor, Tensor | None]: ...
def _from_arrow_stream(
    stream: object, column: str | None, /
) -> tuple[Tensor, Tensor | None]: ...
def _to_arrow(
    tensor: Tensor, validity: Tensor | None, requested: object, /
) -> tuple[CapsuleType, CapsuleType]: ...
def _run(
    kernel: int,
    site: int,
    workgroups: tuple[int, ...],
    given: tuple[Any, ...],
    args: tuple[Any, ...],
    /,
) -> bool: ...

# Outside of a browser only, where _backends/desktop has the GPUBuffers: a Tensor over a GPU
# handle, of which it owns a reference (strides None: row-major); the handle of a Tensor;
# who is told of each handle whose last tensor is gone; elements packed and converted, from
# the one at `first` on: how many (-1: no whole words) and where, until the next call.
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
def _chunk(tensor: Tensor, dtype: int, first: int, /) -> tuple[int, memoryview]: ...
