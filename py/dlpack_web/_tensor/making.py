"""Functions that make Tensors, and one that reads several."""

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from .. import _core
from .._backends import javascript, owner
from .._layout import views
from .._layout.dtype import parse_dtype
from .._layout.text import type_of
from .device import CPU, default_device, first_device, parse_device
from .hints import Reading
from .tensor import Tensor, from_dlpack, share
from .transfer import read

if TYPE_CHECKING:
    import numpy as np


def empty(
    shape: SupportsIndex | Iterable[int],
    dtype: Any = "float32",
    *,
    device: str | tuple[int, int] = "cpu",
) -> Tensor:
    """A Tensor of fresh memory: undefined elements on the CPU, zeros on WebGPU.

    Parameters
    ----------
    shape : int or tuple of int
        The extents.
    dtype : str or dtype
        A name, or an object with one, such as np.float32. Sub-byte elements are packed.
    device : str or Device
        "cpu", whose memory starts at a multiple of 256 bytes, "webgpu" or "webgpu:1".

    Returns
    -------
    Tensor
        For you to release.

    Raises
    ------
    BufferError
        Too large, or no such device.
    TypeError
        An unknown dtype.
    ValueError
        A negative extent.

    Examples
    --------
    >>> dlw.empty((2, 3), int).shape
    (2, 3)
    """
    sizes = views.extents(shape)
    if min(sizes, default=0) < 0:
        raise ValueError(f"extents must not be negative: shape is {sizes!r}")
    # The C core counts in 64 bits; larger extents are too large in any case.
    sizes = tuple(min(extent, 2**63 - 1) for extent in sizes)
    if isinstance(dtype, int):
        raise TypeError(
            f"dtype must be a name such as 'float32', not {dtype!r}; pass a shape of "
            f"several extents as one tuple: empty({(*sizes, dtype)})"
        )
    wanted = parse_dtype(dtype)
    target = parse_device(device) or default_device()
    if target is CPU:
        return _core._empty(sizes, wanted._packed, False)
    return owner(target.id).empty(sizes, wanted, target.id)


def from_gpu_buffer(
    buffer: Any,
    shape: SupportsIndex | Iterable[int],
    dtype: Any,
    *,
    device: str | tuple[int, int],
    byte_offset: int = 0,
    release: Any = None,
) -> Tensor:
    """A Tensor over an existing GPUBuffer; no copy.

    You keep ownership of the buffer: it is never destroyed here.

    Parameters
    ----------
    buffer : GPUBuffer
        A JsProxy in the browser, wgpu-py's own on the desktop.
    shape : int or tuple of int
        The extents.
    dtype : str or dtype
        The dtype of the elements.
    device : str or Device
        The buffer's device (see `webgpu.use_device`), which a GPUBuffer does not name.
    byte_offset : int
        Of element 0, in bytes.
    release : callable, optional
        Called once when nothing here holds the buffer any more.

    Returns
    -------
    Tensor
        For you to release.

    Raises
    ------
    ValueError
        The elements do not fit into the buffer.
    TypeError
        No GPUBuffer.

    Examples
    --------
    >>> device = await dlw.webgpu.request_device()
    >>> with dlw.empty((2, 3), device=device) as t:
    ...     same = dlw.from_gpu_buffer(t.gpu_buffer, 6, "float32", device=device)
    >>> same.shape
    (6,)
    """
    wanted, target = parse_dtype(dtype), parse_device(device)
    if target is CPU:
        raise BufferError("a GPUBuffer is on a WebGPU device, not on 'cpu'")
    if target is None and (target := first_device()) is None:
        raise BufferError(
            "no WebGPU device is registered: register that of the GPUBuffer with "
            "`dlpack_web.webgpu.use_device(gpu)`"
        )
    sizes = views.extents(shape)
    adopt = owner(target.id).from_gpu_buffer
    return adopt(buffer, sizes, wanted, target.id, byte_offset, release)


def to_js(x: object) -> Any:
    """A JavaScript Tensor over the memory of `x`, for a JavaScript call; no copy.

    Parameters
    ----------
    x : Tensor, array, buffer or DLPack producer
        The owner of the elements.

    Returns
    -------
    JsProxy
        A Tensor with its own hold on the memory, whose receiver calls `release()`. Its
        `data` is the typed array. Collecting the Tensor does not release the memory,
        because a typed array of it may still be in use and does not keep it.

    Examples
    --------
    >>> tensor = dlw.to_js(np.arange(3.0))
    >>> tensor.data.length
    3
    >>> tensor.release()
    """
    with share(x) as tensor:
        tensor_at = javascript.calls().tensors.tensorAt
        return javascript.invoke(tensor_at, id(tensor))


def from_js(obj: Any) -> Tensor:
    """A Tensor over an object of JavaScript.

    Zero-copy for memory that Python can see and for GPU tensors; data in JavaScript's
    own memory is copied once. You still release a JavaScript Tensor; if nothing keeps
    it, it is released when JavaScript collects it.

    Parameters
    ----------
    obj : JsProxy
        A JavaScript Tensor, a typed array, or any object with the method
        [Symbol.for("dlpack.exchange")], such as tensors of libraries for which you made
        an `adapter`. For a bare GPUBuffer use `from_gpu_buffer`.

    Returns
    -------
    Tensor
        For you to release.

    Raises
    ------
    TypeError
        Anything else.

    Examples
    --------
    >>> import js
    >>> dlw.from_js(js.Float32Array.new(3)).numpy()
    array([0., 0., 0.], dtype=float32)
    """
    if isinstance(obj, Tensor):
        return from_dlpack(obj)
    take = javascript.calls().tensors.fromJs
    if javascript.is_js(obj):
        return javascript.receive(take, obj)
    try:
        return share(obj)
    except TypeError:
        if hasattr(obj, "__dlpack__"):
            raise
        raise TypeError(
            f"from_js takes a JavaScript object, not {type_of(obj)}: use "
            "dlw.from_dlpack(np.asarray(x)) for Python's own"
        ) from None


def to_host(
    *tensors: Tensor,
) -> "Coroutine[Any, Any, tuple[np.ndarray[Any, Any], ...]]":
    """Awaitable: each tensor's elements as an ndarray, all read back in one submit and
    one map.

    Parameters
    ----------
    *tensors : Tensor
        Of any devices.

    Returns
    -------
    awaitable of tuple of ndarray
        One for each tensor.

    Raises
    ------
    KernelError, DeviceLostError
        The work that wrote the elements failed.

    Examples
    --------
    >>> a, b = await dlw.to_host(dlw.from_buffer(b"abc"), dlw.from_buffer(b"d"))
    >>> a, b
    (array([97, 98, 99], dtype=uint8), array([100], dtype=uint8))
    """
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"to_host takes Tensors, not {type_of(each)}: make one with "
                "dlpack_web.from_dlpack(x)"
            )
    return Reading(_to_host(tensors))


async def _to_host(tensors: Any) -> "tuple[np.ndarray[Any, Any], ...]":
    return tuple(await read(tensors, [None] * len(tensors)))
