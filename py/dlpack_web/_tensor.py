"""The Tensor that users hold: the C core's, with what needs a browser or NumPy."""

from collections.abc import Iterable
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

from . import _browser, _core
from ._arrays import np_dtype, view_array
from ._device import CPU, Device, DLDeviceType, parse_device
from ._docs import DOCS
from ._dtype import bytes_of, dtype_name, pack_dtype
from ._errors import CopyError, fail, kind
from ._explain import explain

if TYPE_CHECKING:
    import numpy as np

_AWAIT = "use `await t.to_host()`"


class Tensor(_core.Tensor):
    """One hold on the memory of a tensor, on the CPU or on a WebGPU device.

    Made by `from_dlpack`, `from_buffer`, `from_js` and `empty`. Arrays, capsules and
    buffers made from a Tensor keep the memory alive by themselves. `release()`, or the
    end of a `with` block, lets go early; then everything but `released` raises
    ReleasedError.
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """Where the elements are: str() gives "cpu" or "webgpu:0"."""
        kind, device_id = self.__dlpack_device__()
        return Device(DLDeviceType(kind), device_id)

    @property
    def dtype(self) -> str:
        """Name of the dtype, "float32" or, with lanes, "float32x4"."""
        return dtype_name(self._dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element alone."""
        return bytes_of(self._dtype, 1, self.padded)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; those of less than a byte share bytes."""
        return bytes_of(self._dtype, self.size, self.padded)

    def __enter__(self) -> Self:
        _ = self.shape  # raises ReleasedError
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def numpy(self) -> "np.ndarray[Any, Any]":
        """An ndarray over the same memory; read-only if the tensor is.

        A WebGPU tensor is read back into a new array where Python may block (JSPI);
        elsewhere BufferError names the way out. dtypes that NumPy lacks, such as
        bfloat16, are those of ml_dtypes where it is installed; else raw bytes, void
        items with the name in `dtype.metadata["dlpack"]`. Lanes are a last axis. Packed
        sub-byte elements are the exception: NumPy gets a read-only, unpacked copy.
        """
        if self.device != CPU:
            return self._read_blocking().numpy()
        return view_array(self)

    def __array__(
        self, dtype: Any = None, *, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        """What np.asarray(t) calls where the buffer protocol does not do."""
        if copy is False and self.device != CPU:
            raise CopyError(f"reading {self.device} back makes a copy")
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise CopyError(f"{array.dtype} to {dtype} makes a copy")
            return array.astype(dtype)
        return array.copy() if copy and self.device == CPU else array

    def to_device(
        self,
        device: str | tuple[int, int],
        /,
        *,
        copy: bool | None = None,
        dtype: Any = None,
    ) -> "Tensor":
        """A Tensor with the same elements on `device`: "cpu", "webgpu", "webgpu:1".

        On the device it is on already: another hold on the same memory. Uploading is
        one copy and needs no await (strided tensors are packed first). Reading back
        blocks, so it needs JSPI; otherwise BufferError. copy=False raises CopyError
        where a copy is needed, copy=True copies in any case (CPU only).

        dtype: what the elements of an upload become, where WGSL has no room for them:
        float64 to float32, complex128 to complex64, float32 to float16 or bfloat16
        (rounded) and back, int64 to int32, uint64 to uint32 (BufferError if a value
        does not fit). Strided and converted uploads take at most 8 MiB of memory.
        """
        name = self.dtype if dtype is None else dtype_named(dtype)
        target, here = parse_device(device), self.device
        if target is None:
            target = here if here != CPU else default_device()
        if name != self.dtype and (here != CPU or target == CPU):
            raise BufferError(
                f"only uploads convert: {self.dtype} on {here} cannot become {name} on "
                f"{target}; convert with NumPy on the CPU"
            )
        if target == here and not copy:
            return _core.from_dlpack(self)
        if target == CPU == here:
            return _core.from_dlpack(self, copy=True)
        if copy is False:
            raise CopyError(f"moving a tensor from {here} to {target} copies it")
        if target == CPU:
            return self._read_blocking()
        if here != CPU:
            raise BufferError(
                f"cannot copy from {here} to {target}: WebGPU buffers do not leave "
                f"their device; {_AWAIT} and upload the result"
            )
        upload = _browser.method("upload")
        return _browser.receive(upload, id(self), target.id, name)

    def write(self, source: object, /, *, convert: bool = False) -> None:
        """Writes the elements of `source` over those of this tensor: one copy.

        source: a Tensor, array or buffer of the same shape and dtype; with convert=True
        of one that `to_device(dtype=...)` converts. To a WebGPU tensor that is an upload
        that needs no new GPUBuffer, and nothing to await. BufferError: another shape or
        dtype, read-only or strided targets; then nothing is written.
        """
        with hold(source) as other:
            if self.device != CPU:
                _browser.call_with("write", (self, other), convert)
                return
            self._check_write(other)
            packed = _core.from_dlpack(other, copy=None if other._row_major() else True)
            memoryview(_core._raw(self)[0])[:] = memoryview(_core._raw(packed)[0])
            packed.release()

    def _check_write(self, source: "Tensor") -> None:
        if (source.shape, source.dtype) != (self.shape, self.dtype):
            raise BufferError(f"{source!r} cannot be written over {self!r}")
        if source.device != CPU:
            raise BufferError(f"the source is on {source.device}: {_AWAIT} of it first")
        if self.read_only or not self._row_major():
            raise BufferError(f"{self!r} cannot be written to: read-only or strided")

    def _row_major(self) -> bool:
        """Whether the elements lie one after the other."""
        step = 1
        for extent, stride in zip(
            reversed(self.shape), reversed(self.strides), strict=True
        ):
            if extent not in (0, 1) and stride != step:
                return self.size == 0
            step *= extent
        return True

    async def to_host(
        self, out: "np.ndarray[Any, Any] | None" = None
    ) -> "np.ndarray[Any, Any]":
        """The elements as an ndarray: read back from a GPU with one copy.

        Into `out` when given (same shape and dtype; one more copy if it is strided),
        which is returned. Of a CPU tensor without `out`, the array shares its memory.
        """
        return (await _to_host([self], [out]))[0]

    @property
    def js(self) -> Any:
        """The JavaScript Tensor over the same memory; released with this one."""
        try:
            twin = self._js
        except AttributeError:
            twin = self._js = _browser.Kept(_browser.method("tensorAt"), id(self))
        assert isinstance(twin, _browser.Kept)
        return twin.js

    @property
    def gpu_buffer(self) -> Any:
        """The GPUBuffer of a WebGPU tensor; BufferError for others."""
        if self.device == CPU:
            raise BufferError(
                "a CPU tensor has no GPUBuffer; use t.to_device('webgpu').gpu_buffer"
            )
        return self.js.buffer

    def _read_blocking(self) -> "Tensor":
        """A CPU copy of a WebGPU tensor; also what `__dlpack__` and buffers call."""
        if not _browser.can_block():
            self._cannot_block()
        target = _like(self)
        _browser.block_on(_browser.call_with("read", (self, target)))
        return target

    def _cannot_block(self) -> NoReturn:
        raise BufferError(
            f"the tensor is on {self.device} and Python cannot wait for it here (that "
            f"needs JSPI and an entry through async Python); {_AWAIT}"
        )

    def __repr__(self) -> str:
        if self.released:
            return "Tensor(released)"
        what = f"shape={self.shape}, dtype={self.dtype!r}, device='{self.device}'"
        return f"Tensor({what}{', read_only' if self.read_only else ''})"

    def _repr_html_(self) -> str:
        """For notebooks: facts, and a thumbnail of images or a histogram of numbers.

        Of a GPU tensor at most 256 KiB are read back, where Python may block.
        """
        from ._show import html

        return html(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def hold(x: Any) -> Tensor:
    """A hold of our own on the memory of any object that shares some."""
    return _core.from_dlpack(x) if hasattr(x, "__dlpack__") else _core.from_buffer(x)


def _like(tensor: Tensor) -> Tensor:
    """Fresh CPU memory for the elements of a tensor."""
    return _core._empty(tensor.shape, tensor._dtype, tensor.padded)


def default_device() -> Device:
    """The first registered WebGPU device that is not lost."""
    for device_id in _browser.call("deviceIds"):
        return Device(DLDeviceType.kDLWebGPU, device_id)
    raise BufferError(
        "no WebGPU device yet: call `await dlpack_web.webgpu.request_device()`, or "
        "`dlpack_web.webgpu.use_device(device)` with one that you have"
    )


def empty(
    shape: SupportsIndex | Iterable[int],
    dtype: Any = "float32",
    *,
    device: str | tuple[int, int] = "cpu",
) -> Tensor:
    """A Tensor of fresh memory: undefined elements on the CPU, zeros on WebGPU.

    dtype: a name, or anything with one, such as np.float32; sub-byte elements are
    packed. CPU memory starts at a multiple of 256 bytes. BufferError: too large;
    TypeError: unknown dtype.
    """
    extents = _extents(shape)
    name = dtype_named(dtype)
    target = parse_device(device)
    if target == CPU:
        return _core._empty(extents, pack_dtype(name), False)
    if target is None:
        target = default_device()
    sizes = _browser.numbers(extents)
    return _browser.receive(_browser.method("empty"), sizes, name, target.id)


def _extents(shape: Any) -> tuple[int, ...]:
    extents: tuple[int, ...]
    try:
        extents = (index(shape),)
    except TypeError:
        extents = tuple(map(index, shape))
    if min(extents, default=0) < 0:
        raise ValueError(f"extents must not be negative: shape is {extents!r}")
    # The C core counts in 64 bits; anything of that size is too large all the same.
    return tuple(min(extent, 2**63 - 1) for extent in extents)


def dtype_named(dtype: Any) -> str:
    """The name that `dtype` is or has; TypeError for what has none."""
    name = dtype
    for attribute in ("name", "__name__"):
        if not isinstance(name, str):
            name = getattr(dtype, attribute, None)
    if not isinstance(name, str):
        raise TypeError(f"dtype must be a name such as 'float32', not {dtype!r}")
    return name


def to_js(x: object) -> Any:
    """A JavaScript Tensor over the memory of `x`, for a JavaScript call; no copy.

    x: a Tensor, an array, any buffer or DLPack producer. `.data` of the result is the
    typed array. It holds the memory by itself: whoever gets it calls `release()`.
    """
    with hold(x) as tensor:
        return _browser.call_with("tensorAt", (tensor,))


def from_js(obj: Any) -> Tensor:
    """A Tensor over a JavaScript Tensor, a typed array, or any object that has the
    method [Symbol.for("dlpack.exchange")]: tensors of the libraries that an `adapter`
    was made for have it.

    Zero-copy for memory that Python can see and for GPU tensors; data in JavaScript's
    own memory is copied once.
    """
    if isinstance(obj, Tensor):
        return _core.from_dlpack(obj)
    return _browser.receive(_browser.method("fromJs"), obj)


async def to_host(*tensors: Tensor) -> "tuple[np.ndarray[Any, Any], ...]":
    """Each tensor's elements as an ndarray: all read back in one submit and one map."""
    return tuple(await _to_host(tensors, [None] * len(tensors)))


async def _to_host(tensors: Any, outs: Any) -> "list[np.ndarray[Any, Any]]":
    arrays, sources, targets = [], [], []
    for tensor, out in zip(tensors, outs, strict=True):
        if out is not None:
            _check_out(tensor, out)
        if tensor.device == CPU:
            arrays.append(tensor)
            continue
        target, array = _landing(tensor, out)
        sources.append(tensor)
        targets.append(target)
        arrays.append(array)
    if sources:
        await _browser.finish(_browser.call_with("read", (*sources, *targets)))
    results = []
    for out, array in zip(outs, arrays, strict=True):
        result = array.numpy() if isinstance(array, Tensor) else array
        if out is not None and out is not result:
            out[...] = result
        results.append(result if out is None else out)
    return results


def _landing(
    tensor: Tensor, out: Any
) -> "tuple[Tensor, np.ndarray[Any, Any] | Tensor]":
    """Where a readback lands, as a Tensor, and what becomes of it: `out` if that can
    be; a Tensor to be asked for its array when the elements are there."""
    import numpy as np

    dtype = np_dtype(tensor.dtype)
    if dtype is None:
        target = _like(tensor)
        return target, target
    contiguous = out is not None and out.flags.c_contiguous
    array = out if contiguous else np.empty(tensor.shape, dtype)
    return _core.from_buffer(array), array


def _check_out(tensor: Tensor, out: "np.ndarray[Any, Any]") -> None:
    if out.shape != tensor.shape or out.dtype.name != tensor.dtype:
        raise ValueError(
            f"out has shape {out.shape} and dtype {out.dtype}; the tensor has "
            f"{tensor.shape} and {tensor.dtype}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; give a writable array")


def place(x: Any, device: str | tuple[int, int], copy: bool | None) -> Tensor:
    """`from_dlpack(x, device=device, copy=copy)`: only a CPU copy is asked of x itself;
    to a GPU the consumer moves."""
    target = parse_device(device)
    if target == CPU:
        tensor = _core._from_dlpack_on(x, CPU, copy)
        return tensor if tensor.device == CPU else tensor.to_device(CPU, copy=copy)
    return _core.from_dlpack(x).to_device(device, copy=copy)


_core._bind(Tensor, fail, kind, explain, place, DOCS)
Tensor.__module__ = "dlpack_web"
