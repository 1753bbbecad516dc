"""Tensors to and from tinygrad's, without copies. Importing this imports tinygrad."""

import ctypes
from typing import Any
from weakref import finalize

from tinygrad import Tensor as TinyTensor
from tinygrad import dtypes
from tinygrad.device import BufferSpec
from tinygrad.device import Device as Devices
from tinygrad.dtype import strong_dtype
from tinygrad.helpers import all_int
from tinygrad.runtime.ops_python import PythonDevice

from dlpack_web import DType, Tensor, empty, from_buffer
from dlpack_web.internal import CPU, describe, is_row_major, memory_of, retyped, share

from ._device import NAME, in_use

_NAMES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_NAMES += ["bool", "float16", "bfloat16", "float32", "float64"]
_THEIRS = {name: getattr(dtypes, name) for name in _NAMES}
_THEIRS |= {"float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2}
_OURS = {dtype: DType(name) for name, dtype in _THEIRS.items()}

_OUTSIDE = BufferSpec(external_ptr=1)  # memory that tinygrad does not count as its own


def from_dlpack(x: Any) -> Any:
    tensor = share(x)
    try:
        dtype = _THEIRS.get(tensor.dtype)
        if dtype is None:
            raise BufferError(
                f"{describe(tensor)}: tinygrad has no such dtype; it has "
                f"{', '.join(_THEIRS)}"
            )
        if not is_row_major(tensor):
            raise BufferError(
                f"{describe(tensor)} is strided: tinygrad's buffers are in row-major "
                "order; use np.ascontiguousarray(x), or permute and slice in tinygrad"
            )
        host = tensor.device.is_host
        if not host:
            _check_place(tensor)
        name = "CPU" if host else NAME
        made_here = TinyTensor.empty(*tensor.shape, dtype=dtype, device=name)
        if tensor.size > 0:
            buffer = made_here.uop.buffer
            buffer.options = _OUTSIDE
            (_hold_host if host else _hold_gpu)(buffer, tensor)
        return made_here
    except BaseException:
        tensor.release()
        raise


def _check_place(tensor: Tensor) -> None:
    if tensor.device != in_use():
        raise BufferError(
            f"{describe(tensor)}: tinygrad's {NAME} is {in_use()}, and devices do not "
            "share buffers; call dlpack_web_tinygrad.install(t.device), or await its "
            "to_host() and upload it"
        )
    if tensor.byte_offset % 4 != 0:
        raise BufferError(
            f"{describe(tensor)} begins at byte {tensor.byte_offset} of its GPUBuffer: "
            "shaders need a multiple of 4"
        )


def _hold_gpu(buffer: Any, tensor: Tensor) -> None:
    """The allocator releases what it was given when tinygrad frees the buffer."""
    with tensor:
        buffer.allocate(opaque=retyped(tensor, (tensor.nbytes,), DType("uint8")))


def _hold_host(buffer: Any, tensor: Tensor) -> None:
    if tensor.read_only:
        raise BufferError(
            f"{describe(tensor)} is read-only, and tinygrad's buffers are writable: "
            "use dlw.from_dlpack(x, copy=True)"
        )
    memory = memory_of(tensor)
    if isinstance(Devices["CPU"], PythonDevice):
        buffer.allocate(opaque=memory)  # which holds the tensor's memory
        tensor.release()
        return
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    buffer.allocate(external_ptr=address)
    finalize(buffer, tensor.release).atexit = False


def to_dlpack(t: Any) -> Tensor:
    if not isinstance(t, TinyTensor):
        raise TypeError(f"to_dlpack takes a tinygrad.Tensor, not {t!r}")
    if t.dtype in dtypes.weaks:
        t = t.cast(strong_dtype(t.dtype))
    dtype = _OURS.get(t.dtype)
    if dtype is None:
        raise BufferError(
            f"DLPack has no dtype {t.dtype}: cast() it to one of {', '.join(_THEIRS)}"
        )
    if not all_int(t.shape):
        raise BufferError(
            "the tensor has a symbolic shape, and DLPack has numbers: slice it with "
            "numbers, as in t[:3]"
        )
    if type(t.device) is tuple:
        raise BufferError(
            f"the tensor is on several devices, {', '.join(t.device)}: use t.to({NAME!r})"
        )
    if 0 in t.shape:
        return empty(t.shape, dtype, device=in_use() if t.device == NAME else CPU)
    if t.uop.device is None:  # a constant
        t = t.clone(NAME)
    buffer = t.contiguous().realize().uop.buffer.ensure_allocated()
    memory = _memory(buffer)
    if isinstance(memory, Tensor):
        return retyped(memory, t.shape, dtype)
    with from_buffer(memory) as raw:
        return retyped(raw, t.shape, dtype)


def _memory(buffer: Any) -> Any:
    """The Tensor of a buffer on the GPU; elsewhere, bytes that hold it."""
    if buffer.device == NAME:
        return buffer._buf
    if buffer.device not in ("CPU", "PYTHON", "NPY"):
        raise BufferError(
            f"the tensor is on {buffer.device}: use t.to({NAME!r}) or t.to('CPU')"
        )
    view: memoryview = buffer.as_memoryview(force_zero_copy=True)
    if buffer.device != "CPU" or isinstance(Devices["CPU"], PythonDevice):
        return view
    memory = (ctypes.c_uint8 * buffer.nbytes).from_buffer(view)
    vars(memory)["owner"] = buffer
    return memory


async def to_host(t: Any) -> Any:
    with to_dlpack(t) as tensor:
        if not tensor.device.is_host:
            return await tensor.to_host()
        return tensor.numpy().copy()


def _dlpack(self: Any, **options: Any) -> Any:
    """Added to tinygrad's Tensor: DLPack's capsule, from `to_dlpack`."""
    with to_dlpack(self) as tensor:
        return tensor.__dlpack__(**options)


def _dlpack_device(self: Any) -> tuple[int, int]:
    """Added to tinygrad's Tensor."""
    place = in_use() if self.device == NAME else CPU
    return int(place.type), place.id


def teach() -> None:
    """Makes tinygrad's Tensor a producer of DLPack, unless it is one."""
    if not hasattr(TinyTensor, "__dlpack__"):
        TinyTensor.__dlpack__ = _dlpack
        TinyTensor.__dlpack_device__ = _dlpack_device
