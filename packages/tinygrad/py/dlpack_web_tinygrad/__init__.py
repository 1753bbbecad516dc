"""tinygrad on the GPU of the page, or of the desktop, over Tensors of this library.

`install()` makes a WebGPU device tinygrad's, which is `pip install tinygrad` without
changes. Automatic gradients, training and tinygrad's models then run there, and its
tensors share GPU memory with those of this library without a copy.

>>> import dlpack_web_tinygrad as dlwt
>>> device = dlwt.install()
>>> from tinygrad import Tensor
>>> x = Tensor([1.0, 2.0, 3.0])
>>> loss = (x * x).sum().backward()
>>> await dlwt.to_host(x.grad)
array([2., 4., 6.], dtype=float32)
"""

import os
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dlpack_web import Device, Tensor
from dlpack_web.internal import CPU, default_device, parse_device

if TYPE_CHECKING:
    import numpy as np


__all__ = ["from_dlpack", "install", "to_dlpack", "to_host"]


# The versions that are tested.
_OLDEST, _BEFORE = (0, 14), (0, 15)
_RANGE = "tinygrad>=0.14,<0.15"

#: WebGPU's limits that shaders of tinygrad meet. A new device gets the adapter's.
_LIMITS = (
    "maxStorageBuffersPerShaderStage",
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
    "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ",
    "maxComputeWorkgroupStorageSize",
)


def install(device: str | tuple[int, int] = "webgpu") -> Device:
    """Makes a WebGPU device tinygrad's device "WEBGPU", and its default, unless DEV names
    another.

    Call it before the first use of tinygrad, which may be imported already. You can call it
    again: nothing happens, or, after the device was lost, tinygrad gets another one.
    tinygrad's tensors on the lost device, and functions that TinyJit captured, are lost.

    tinygrad's device "CPU" needs the compiler clang. Where there is none, as in a page,
    tinygrad's interpreter in Python takes its place. Browsers keep the kernels that tinygrad
    generated until the next visit.

    Parameters
    ----------
    device : str or Device
        Default: the one that other tensors have. If there is none, one is requested with the
        limits of the adapter, which needs JSPI in a page: else call `await
        dlw.webgpu.request_device()` first.

    Raises
    ------
    ImportError
        tinygrad is missing, or of a version that is not supported.
    BufferError
        No WebGPU device, or tinygrad has opened its own.

    Examples
    --------
    >>> import dlpack_web_tinygrad as dlwt
    >>> device = dlwt.install()
    >>> from tinygrad import Device
    >>> Device.DEFAULT
    'WEBGPU'
    """
    _check_version()
    target = _choose_device(device)
    os.environ.setdefault("DEV", "WEBGPU")
    # Pages have no processes, and GPU devices do not survive a fork.
    os.environ.setdefault("PARALLEL", "0")
    os.environ.setdefault("JIT_BATCH_SIZE", "0")  # all that TinyJit captured at once
    from . import _device as ours
    from . import _exchange

    ours.use(target)
    _exchange.teach()
    return target


def from_dlpack(x: Any, /) -> Any:
    """A tinygrad.Tensor over the memory of `x`: no copy.

    Writes (`assign`) are seen by `x`.

    Parameters
    ----------
    x : Tensor, array, buffer or DLPack producer
        Row-major. You may release it: the result holds the memory until tinygrad frees its
        buffer.

    Returns
    -------
    tinygrad.Tensor
        On "WEBGPU", over the same GPUBuffer, if `x` is on the device of `install`. In memory
        on tinygrad's "CPU": `.to("WEBGPU")` uploads it with one copy.

    Raises
    ------
    BufferError
        Strided or read-only memory, a dtype that tinygrad lacks, another device.

    Examples
    --------
    >>> import dlpack_web_tinygrad as dlwt
    >>> device = dlwt.install()
    >>> x = dlw.from_dlpack(np.arange(3.0), device=device, dtype="float32")
    >>> t = dlwt.from_dlpack(x)
    >>> await dlwt.to_host(t + 1)
    array([1., 2., 3.], dtype=float32)
    """
    return _installed().from_dlpack(x)


def to_dlpack(t: Any, /) -> Tensor:
    """A Tensor over the memory of a tinygrad.Tensor, which is realized: no copy, except of
    views that are not contiguous.

    tinygrad may write to it again, by `assign` or by the next call of a function under
    TinyJit. `dlw.from_dlpack(t)` is the same, and any other consumer of DLPack takes
    tinygrad's tensors after `install()`, too.

    Parameters
    ----------
    t : tinygrad.Tensor
        On one device, with a known shape.

    Returns
    -------
    Tensor
        Holds the memory; you release it.

    Raises
    ------
    BufferError
        Symbolic shapes, tensors on several devices.

    Examples
    --------
    >>> import dlpack_web_tinygrad as dlwt
    >>> device = dlwt.install()
    >>> from tinygrad import Tensor
    >>> t = dlwt.to_dlpack(Tensor([1.0, 2.0]) * 2)
    >>> t.shape, t.dtype, t.device == device
    ((2,), 'float32', True)
    """
    tensor: Tensor = _installed().to_dlpack(t)
    return tensor


async def to_host(t: Any, /) -> "np.ndarray[Any, Any]":
    """The elements of a tinygrad.Tensor, for where Python cannot wait: there `t.numpy()`,
    `t.tolist()` and `t.item()` raise an error.

    Parameters
    ----------
    t : tinygrad.Tensor
        On any device.

    Returns
    -------
    ndarray
        With memory of its own.

    Examples
    --------
    >>> import dlpack_web_tinygrad as dlwt
    >>> device = dlwt.install()
    >>> from tinygrad import Tensor
    >>> await dlwt.to_host(Tensor([1.0, 2.0]) + 1)
    array([2., 3.], dtype=float32)
    """
    array: np.ndarray[Any, Any] = await _installed().to_host(t)
    return array


def _installed() -> Any:
    found = sys.modules.get(f"{__name__}._exchange")
    if found is None:
        raise BufferError("call dlpack_web_tinygrad.install() first")
    return found


def _check_version() -> None:
    """ImportError unless a supported tinygrad is installed."""
    if find_spec("tinygrad") is None:
        raise ImportError(
            f"dlpack_web_tinygrad needs tinygrad: pip install '{_RANGE}' (in Pyodide: "
            f"await micropip.install('{_RANGE}'))"
        )
    try:
        version = metadata.version("tinygrad")
    except metadata.PackageNotFoundError:
        return  # unpacked by hand
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if not _OLDEST <= numbers < _BEFORE:
        raise ImportError(
            f"tinygrad {version} is installed; supported is {_RANGE}: pip install "
            f"'{_RANGE}'"
        )


def _choose_device(device: str | tuple[int, int]) -> Device:
    """The Device for `install`; one with the adapter's _LIMITS if there is none."""
    target = parse_device(device)
    if target is CPU:
        raise BufferError("tinygrad's own CPU device needs no install(): use 'webgpu'")
    return target or default_device(dict.fromkeys(_LIMITS, float("inf")))
