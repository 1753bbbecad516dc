"""The Tensor that users hold: the C core's, with what needs a browser or NumPy."""

from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from math import prod
from typing import (
    TYPE_CHECKING,
    Any,
    Never,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    cast,
)

from .. import _core
from .._backends import backend, browser, is_loaded
from .._core import CopyError, ReleasedError
from .._layout import views
from .._layout.dtype import (
    DType,
    can_convert,
    dtype_of,
    element_dtype,
    np_dtype,
    parse_dtype,
)
from .._layout.words import type_of
from . import show
from .arrays import byte_strides, view_array
from .device import CPU, Device, DLDeviceType, parse_device, webgpu_device
from .explain import explain
from .hints import Hints, Reading
from .pyarrow import pyarrow_array

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import CapsuleType

_AWAIT = "use `await t.to_host()`"

# What a picture of a tensor may read back from a GPU.
_PICTURE_BYTES = 256 << 10


class Tensor(_core.Tensor, Hints):
    """One hold on the memory of a tensor, on the CPU or on a WebGPU device.

    Made by `from_dlpack`, `from_buffer`, `from_js` and `empty`. Arrays, capsules and
    buffers made from a Tensor keep the memory alive by themselves. `release()`, or the
    end of a `with` block, lets go early; then everything but `released` raises
    ReleasedError. A Tensor does no arithmetic; NumPy and whatever speaks DLPack take it.

    >>> t = dlw.from_dlpack(np.arange(6.0).reshape(2, 3))
    >>> t
    Tensor([[0., 1., 2.],
            [3., 4., 5.]], shape=(2, 3), dtype='float64', device='cpu')
    >>> np.asarray(t).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """

    __slots__ = ()

    # --- facts ------------------------------------------------------------------------

    @property
    def device(self) -> Device:
        """Where the elements are: str() gives "cpu" or "webgpu:0".

        >>> str(dlw.empty(3).device)
        'cpu'
        """
        kind, device_id = self.__dlpack_device__()
        return Device(DLDeviceType(kind), device_id)

    @property
    def dtype(self) -> DType:
        """The dtype, a str: "float32" or, with lanes, "float32x4".

        >>> dlw.empty(3, "uint8").dtype
        'uint8'
        """
        return dtype_of(self._dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps between neighbours in elements, a tuple of ints. NumPy's count bytes: making
        an array of these raises TypeError.

        >>> dlw.empty((2, 3)).strides
        (3, 1)
        """
        return views.Strides(super().strides)

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        >>> dlw.empty((2, 3)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        >>> dlw.empty((2, 3)).size
        6
        """
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element alone.

        >>> dlw.empty(3, "float64").itemsize
        8
        """
        return 1 if self.padded else self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; those of less than a byte share bytes.

        >>> dlw.empty(3, "float64").nbytes, dlw.empty(3, "uint4").nbytes
        (24, 2)
        """
        return -(-self._bits() // 8)  # rounded up

    def _bits(self) -> int:
        dtype = self.dtype
        return self.size * (8 if self.padded else dtype.bits * dtype.lanes)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a Tensor without dimensions: use t.numpy()")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"a Tensor of {self.size} elements is neither true nor false: use "
                "`t is not None`, or np.asarray(t).any()"
            )
        return bool(self.numpy().item())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.shape or self.dtype.code > 1:
            raise TypeError(
                f"a Tensor of {self.dtype} and shape {self.shape} is no index: a single "
                "integer, of shape (), is"
            )
        return int(self._number())

    def __format__(self, spec: str) -> str:
        return format(self._number(), spec) if spec else str(self)

    def _number(self) -> Any:
        if self.size != 1:
            raise TypeError(
                f"a Tensor of {self.size} elements is no number: use t[i], or "
                "np.asarray(t)"
            )
        return self.numpy().item()

    # --- views ------------------------------------------------------------------------

    def reshape(
        self, shape: SupportsIndex | Iterable[int], /, *more: Never
    ) -> "Tensor":
        """The same elements in the same order, with another shape: a view, with a hold of
        its own on the same memory, on the CPU and on WebGPU.

        One extent may be -1. ValueError: another number of elements; BufferError: the
        elements do not lie so that a view would do.

        >>> dlw.from_buffer(bytes(6)).reshape((2, -1)).shape
        (2, 3)
        """
        _one_tuple("reshape", shape, *more)
        return self._view(views.reshape(self._layout(), shape))

    def permute_dims(self, axes: Iterable[int], /, *more: Never) -> "Tensor":
        """The axes in another order, as the array API has it: a view, with a hold of its
        own. ValueError: `axes` is no permutation.

        >>> dlw.empty((2, 3)).permute_dims((1, 0)).shape
        (3, 2)
        """
        _one_tuple("permute_dims", axes, *more)
        return self._view(views.permute(self._layout(), axes))

    def __getitem__(self, key: Any) -> "Tensor":
        """A view, with a hold of its own: ints, slices, `...` and None, as in NumPy.

        >>> t = dlw.from_dlpack(np.arange(6).reshape(2, 3))
        >>> t[0, ::-1].numpy().tolist()
        [2, 1, 0]
        """
        first = key[0] if isinstance(key, tuple) and key else key
        rows = first if isinstance(first, slice) else None
        return self._view(views.select(self._layout(), key), rows)

    def __iter__(self) -> Iterator["Tensor"]:
        if not self.shape:
            raise TypeError(
                "iteration over a Tensor without dimensions: use t.numpy().item()"
            )
        return map(self.__getitem__, range(len(self)))

    def _layout(self) -> views.Layout:
        return views.Layout(self.shape, self.strides)

    def _view(self, layout: views.Layout, rows: slice | None = None) -> "Tensor":
        """rows: what is taken of axis 0, where it stays the first one."""
        validity = self.validity
        if validity is None:
            return made(_core._view(self, *layout))
        if rows is None:
            raise BufferError(
                "some elements are null, and this view would not say which: take slices "
                "along axis 0, or the elements alone, t.numpy()"
            )
        view = made(_core._view(self, *layout))
        view._validity = validity[rows]
        return view

    # --- lifetime -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        _ = self.shape  # raises ReleasedError
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    # --- Arrow ----------------------------------------------------------------------------

    @property
    def validity(self) -> "Tensor | None":
        """Of a Tensor that `from_arrow` made of an array with nulls: a Tensor of bool, False
        where an element of axis 0 is null and whatever lies there has no meaning. None: there
        are no nulls. Slices along axis 0 and what Arrow and JavaScript get have theirs; other
        views are refused, and arrays, copies and other devices get the elements alone.

        >>> dlw.empty(3).validity is None
        True
        """
        return cast("Tensor | None", getattr(self, "_validity", None))

    def __arrow_c_array__(
        self, requested_schema: object = None
    ) -> "tuple[CapsuleType, CapsuleType]":
        """The capsules of Arrow's C data interface; see `to_arrow`.

        requested_schema: None, or the capsule of an ArrowSchema of the Tensor's own type;
        names of fields do not matter. Elements are not converted: BufferError for any
        other type, extension types included.

        >>> t = dlw.empty(3)
        >>> schema, array = t.__arrow_c_array__()
        >>> len(t.__arrow_c_array__(requested_schema=schema))
        2
        """
        return _core._to_arrow(self, self.validity, requested_schema)

    def __arrow_array__(self, type: Any = None) -> Any:
        """A pyarrow.Array of the elements: pyarrow asks for it first. It ignores `mask` and
        `size` for objects that have only `__arrow_c_array__`; for this it raises ValueError.
        """
        return pyarrow_array(self.__arrow_c_array__, type)

    # --- NumPy ----------------------------------------------------------------------------

    def numpy(self) -> "np.ndarray[Any, Any]":
        """An ndarray over the same memory; read-only if the tensor is.

        A WebGPU tensor is read back into a new array where Python may block (JSPI);
        elsewhere it raises BufferError. That array is read-only, since writes
        would not reach the GPU; `to_host()` and np.array(t) give writable ones. dtypes that NumPy lacks, such as
        bfloat16, are those of ml_dtypes where it is installed; else raw bytes, void
        items with the name in `dtype.metadata["dlpack"]`. Lanes are a last axis. Packed
        sub-byte elements are the exception: NumPy gets a read-only, unpacked copy.

        >>> dlw.from_buffer(b"abc").numpy()
        array([97, 98, 99], dtype=uint8)
        """
        array = self._array()
        if not self.device.is_host:
            array.flags.writeable = False
        return array

    def _array(self) -> "np.ndarray[Any, Any]":
        return view_array(self if self.device.is_host else self._read_blocking())

    def to_numpy(self) -> "np.ndarray[Any, Any]":
        """The same as `numpy()`, by the name that pandas and matplotlib look for.

        >>> dlw.from_buffer(b"abc").to_numpy()
        array([97, 98, 99], dtype=uint8)
        """
        return self.numpy()

    def __array__(
        self, dtype: Any = None, *, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        """What np.asarray(t) calls where the buffer protocol does not do."""
        interrupt = self._interrupt()
        if interrupt is not None:  # which NumPy dropped, when it asked for the buffer
            raise interrupt
        if copy is False and not self.device.is_host:
            raise CopyError(f"reading {self.device} back makes a copy")
        array = self._array() if copy else self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise CopyError(f"{array.dtype} to {dtype} makes a copy")
            return array.astype(dtype)
        fresh = not self.device.is_host and array.flags.writeable
        return array.copy() if copy and not fresh else array

    @property
    def __numpy_dtype__(self) -> "np.dtype[Any]":
        """What np.dtype(t) is, and jnp.asarray(t) asks for (from NumPy 2.4 on).

        >>> dlw.empty(3).__numpy_dtype__
        dtype('float32')
        """
        return element_dtype(self.dtype)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For Pillow and others that look for it; of host memory alone.

        There is no "data": an address would outlive `release()`. Pillow asks the Tensor
        for a buffer, which holds the memory.

        >>> dlw.empty((2, 3), "uint8").__array_interface__["typestr"]
        '|u1'
        """
        dtype = np_dtype(self.dtype)
        if dtype is None or not self.device.is_host:
            raise AttributeError(f"{self._facts_alone()} has no __array_interface__")
        strides = byte_strides(self, dtype.itemsize)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": dtype.str,
            "strides": None if self._row_major() else strides,
        }

    def tobytes(self) -> bytes:
        """The elements in row-major order, copied.

        >>> dlw.from_buffer(b"abc")[::-1].tobytes()
        b'cba'
        """
        if not self.device.is_host:
            return self._read_blocking().tobytes()
        whole = self._row_major() and self._bits() % 8 == 0
        packed = self if whole else _core.from_dlpack(self, copy=True)
        return bytes(memoryview(_core._raw(packed)[0]))

    # --- devices --------------------------------------------------------------------------

    def to_device(
        self,
        device: str | tuple[int, int],
        /,
        *,
        stream: None = None,
        copy: bool | None = None,
        dtype: Any = None,
    ) -> "Tensor":
        """A Tensor with the same elements on `device`: "cpu", "webgpu", "webgpu:1".

        On the device it is on already: another hold on the same memory. Uploading is
        one copy and needs no await (strided tensors are packed first). Reading back
        blocks, so it needs JSPI; otherwise BufferError. copy=False raises CopyError
        where a copy is needed, copy=True copies in any case (CPU only).

        On the desktop over wgpudawn, copy=False to "webgpu" shares writable host memory
        with the GPU: whole pages, where the adapter has "host-mapped-pointer". copy=False
        back to "cpu" waits for the GPU, and gives the same memory.

        dtype: what the elements become on the way from the CPU, where WGSL has no room
        for them: float64 to float32, complex128 to complex64, float32 to float16 or
        bfloat16 (rounded) and back, int64 to int32, uint64 to uint32 (BufferError if a
        value does not fit). Strided and converted uploads take at most 8 MiB of memory.

        stream: the array API's; None alone, since a device has one queue (ValueError).

        >>> dlw.from_dlpack(np.arange(3.0)).to_device("cpu", dtype="float32").numpy()
        array([0., 1., 2.], dtype=float32)
        """
        if stream is not None:
            raise ValueError(
                f"stream must be None, not {stream!r}: the CPU has no streams, and a "
                "WebGPU device has one queue"
            )
        wanted = self.dtype if dtype is None else parse_dtype(dtype)
        target, here = parse_device(device), self.device
        if target is None:
            target = default_device() if here.is_host else here
        if here.is_host and target is CPU:
            return self._on_host(wanted, copy)
        if not here.is_host and wanted != self.dtype:
            raise BufferError(
                f"elements are converted on the way from the CPU: {self.dtype} on {here} "
                f"cannot become {wanted} on {target}; convert with NumPy on the CPU"
            )
        if target == here and not copy:
            return made(_core.from_dlpack(self))
        if copy is False:
            if wanted != self.dtype:
                raise CopyError(f"{self.dtype} to {wanted} makes a copy")
            if here.is_host:
                return made(backend().share(self, target.id))
            if target is CPU:
                return made(backend().on_host(self))
            raise CopyError(f"moving a tensor from {here} to {target} copies it")
        if target is CPU:
            return self._read_blocking()
        if not here.is_host:
            raise BufferError(
                f"cannot copy from {here} to {target}: WebGPU buffers do not leave "
                f"their device; {_AWAIT} and upload the result"
            )
        return made(backend().upload(self, target.id, wanted))

    def _on_host(self, dtype: DType, copy: bool | None) -> "Tensor":
        if dtype != self.dtype:
            if copy is False:
                raise CopyError(f"{self.dtype} to {dtype} makes a copy")
            return made(_core._convert(self, dtype._packed))
        if self.device == CPU:
            return from_dlpack(self, copy=copy)
        return made(_core._from_dlpack_on(self, CPU, copy, False))

    def write(self, source: object, /, *, convert: bool = False) -> None:
        """Writes the elements of `source` over those of this tensor: one copy.

        source: a Tensor, array or buffer of the same shape and dtype; with convert=True
        of one that `to_device(dtype=...)` converts. To a WebGPU tensor that is an upload
        that needs no new GPUBuffer, and nothing to await. BufferError: another shape or
        dtype, read-only or strided targets; then nothing is written.

        >>> t = dlw.empty(3)
        >>> t.write(np.arange(3.0), convert=True)
        >>> t.numpy()
        array([0., 1., 2.], dtype=float32)
        """
        with _hold(source) as other:
            if not self.device.is_host:
                backend().write(self, other, convert)
                return
            self._check_write(other, convert)
            packed = other
            if other.dtype != self.dtype:
                packed = made(_core._convert(other, self._dtype))
            elif not other._row_major():
                packed = made(_core.from_dlpack(other, copy=True))
            target, elements = (memoryview(_core._raw(t)[0]) for t in (self, packed))
            _overwrite(target, elements, self._bits())

    def _check_write(self, source: "Tensor", convert: bool) -> None:
        same = source.dtype == self.dtype and source.padded == self.padded
        if source.shape != self.shape or not (same or convert):
            fits = source.shape == self.shape and can_convert(source.dtype, self.dtype)
            way = "; convert=True converts" if fits else ""
            raise BufferError(
                f"{source._facts_alone()} cannot be written over {self._facts_alone()}: "
                f"shape and dtype must be the same{way}"
            )
        if not source.device.is_host:
            raise BufferError(f"the source is on {source.device}: {_AWAIT} of it first")
        if self.read_only or not self._row_major():
            raise BufferError(
                f"{self._facts_alone()} cannot be written to: read-only or strided"
            )

    def _row_major(self) -> bool:
        """Whether the elements lie one after the other."""
        return views.is_row_major(self.shape, self.strides)

    def to_host(
        self, out: "np.ndarray[Any, Any] | None" = None
    ) -> "Coroutine[Any, Any, np.ndarray[Any, Any]]":
        """To be awaited: the elements as an ndarray, read back from a GPU with one copy.

        Into `out` when given (same shape and dtype; one more copy if it is strided),
        which is returned. Of a CPU tensor without `out`, the array shares its memory.

        >>> await dlw.from_buffer(b"abc").to_host()
        array([97, 98, 99], dtype=uint8)
        """
        return Reading(self._to_host(out))

    async def _to_host(self, out: Any) -> "np.ndarray[Any, Any]":
        return (await _read([self], [out]))[0]

    @property
    def js(self) -> Any:
        """The JavaScript Tensor over the same memory; released with this one.

        >>> a = np.arange(3.0)
        >>> t = dlw.from_dlpack(a)
        >>> t.js.data[1] = 7
        >>> a
        array([0., 7., 2.])
        """
        try:
            twin = self._js
        except AttributeError:
            twin = self._js = browser.Kept(browser.method("tensorAt"), id(self))
        assert isinstance(twin, browser.Kept)
        return twin.js

    @property
    def gpu_buffer(self) -> Any:
        """The GPUBuffer of a WebGPU tensor: a JsProxy in the browser, wgpu-py's own on
        the desktop. BufferError for others.

        Who takes it may keep it: from then on it is left to the garbage collector,
        neither destroyed nor used again when the tensor is released.

        >>> device = await dlw.webgpu.request_device()
        >>> dlw.empty(3, device=device).gpu_buffer.size
        16
        """
        if self.device.is_host:
            raise BufferError(
                "a CPU tensor has no GPUBuffer; use t.to_device('webgpu').gpu_buffer"
            )
        return backend().gpu_buffer(self)

    def to_wgpu(self) -> Any:
        """The wgpu.GPUBuffer of a WebGPU tensor on the desktop, for pygfx and others; no
        copy. Element 0 is at `byte_offset`.

        It may be kept, as that of `gpu_buffer`. BufferError: on the CPU, strided, or in a
        browser, where `gpu_buffer` is JavaScript's own.

        >>> dlw.empty(3).to_wgpu()
        Traceback (most recent call last):
        ...
        BufferError: a CPU tensor has no GPUBuffer; use t.to_device('webgpu').to_wgpu()
        """
        if self.device.is_host:
            raise BufferError(
                "a CPU tensor has no GPUBuffer; use t.to_device('webgpu').to_wgpu()"
            )
        return backend().to_wgpu(self)

    def _read_blocking(self) -> "Tensor":
        """A CPU copy of a WebGPU tensor; also what `__dlpack__` and buffers call."""
        if not backend().can_block():
            self._cannot_block()
        target = _like(self)
        backend().read_blocking([self], [target])
        return target

    def _cannot_block(self) -> NoReturn:
        raise BufferError(
            f"the tensor is on {self.device} and Python cannot wait for it here (that "
            f"needs JSPI and an entry through async Python); {_AWAIT}"
        )

    # --- notebooks ------------------------------------------------------------------------

    def __repr__(self) -> str:
        """The first and last elements where the CPU reads them at once, and the facts."""
        try:
            return f"Tensor({self._elements()}{self._said_facts()})"
        except ReleasedError:
            return "Tensor(released)"

    def _facts_alone(self) -> str:
        """The repr without elements, for messages."""
        return f"Tensor({self._said_facts()})"

    def _said_facts(self) -> str:
        what = f"shape={self.shape}, dtype={self.dtype!r}, device='{self.device}'"
        return f"{what}{', read_only' if self.read_only else ''}"

    def _elements(self) -> str:
        # Those that are null have no meaning, and packed ones are unpacked all together.
        packed = self.dtype.bits < 8 and self.size > show.SHOWN
        if not self.device.is_host or self.validity is not None or packed:
            return ""
        try:
            text = show.elements(self.numpy(), "Tensor(")
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - no NumPy, a dtype that it lacks: facts will do
            text = ""
        return text and f"{text}, "

    def _repr_html_(self) -> str:
        """For notebooks: facts, and a thumbnail of images or a histogram of numbers.

        Of a GPU tensor at most 256 KiB are read back, where Python may block.
        """
        try:
            return show.html("dlpack_web.Tensor", self._facts(), self._picture())
        except ReleasedError:
            return "<code>Tensor(released)</code>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _facts(self) -> dict[str, str]:
        return {
            "dtype": self.dtype + (", a byte each" if self.padded else ""),
            "shape": str(self.shape),
            "strides": f"{self.strides}, in elements",
            "device": str(self.device),
            "size": show.size_of(self.nbytes),
            "access": "read-only" if self.read_only else "read and write",
            "memory of": self._memory_of(),
        }

    def _memory_of(self) -> str:
        if not self.device.is_host:
            pooled = False
            with suppress(ReleasedError):  # a handle that is of no GPUBuffer known here
                pooled = is_loaded() and backend().is_pooled(self)
            return "dlpack_web, in its pool" if pooled else "whoever made the GPUBuffer"
        owner = self._owner
        if isinstance(owner, bool):
            return "another DLPack producer" if owner else "dlpack_web"
        return f"{type(owner).__module__}.{type(owner).__qualname__}"

    def _picture(self) -> "np.ndarray[Any, Any] | str":
        """The elements to be shown, or why they are not."""
        if self.size == 0:
            return "no elements"
        if not self.device.is_host:
            if self.nbytes > _PICTURE_BYTES:
                return (
                    "on the GPU, and more than is read back only to be shown: await "
                    "t.to_host()"
                )
            if not backend().can_block():
                return "on the GPU: await t.to_host()"
        try:
            return self.numpy()
        except (BufferError, ImportError) as error:
            if self.released:
                raise
            return str(error)


# --- making tensors ---------------------------------------------------------------------------


class _Producer(Protocol):
    def __dlpack__(self) -> "CapsuleType": ...


class _FromDLPack(Protocol):
    def __call__(
        self,
        x: "_Producer | CapsuleType",
        /,
        *,
        device: str | tuple[int, int] | None = None,
        copy: bool | None = None,
        dtype: Any = None,
    ) -> Tensor: ...


class _FromBuffer(Protocol):
    def __call__(self, obj: object, /) -> Tensor: ...


# Called straight in C, which makes what is bound below.
from_dlpack = cast(_FromDLPack, _core.from_dlpack)
from_buffer = cast(_FromBuffer, _core.from_buffer)


def _one_tuple(name: str, first: object, *more: object) -> None:
    """TypeError for extents or axes one by one, as NumPy's methods take them."""
    if more:
        raise TypeError(f"{name}() takes one tuple: use t.{name}({(first, *more)})")


def made(tensor: _core.Tensor) -> Tensor:
    """What the C core made, by its full type."""
    return cast(Tensor, tensor)


def share(x: Any) -> Tensor:
    """A hold of our own on the memory of any object that shares some."""
    return from_dlpack(x) if hasattr(x, "__dlpack__") else from_buffer(x)


def _hold(x: Any) -> Tensor:
    """The same to copy from once: the memory may be misaligned."""
    return made(_core._hold(x))


def _like(tensor: Tensor) -> Tensor:
    """Fresh CPU memory for the elements of a tensor."""
    return made(_core._empty(tensor.shape, tensor._dtype, tensor.padded))


def _overwrite(target: memoryview, source: memoryview, bits: int) -> None:
    """The first `bits` of the bytes; those behind them may be of other elements."""
    whole, rest = divmod(bits, 8)
    mask = (1 << rest) - 1
    # Read before anything is written: the two may overlap.
    last = [target[whole] & ~mask | source[whole] & mask] if rest else []
    target[:whole] = source[:whole]
    target[whole : whole + len(last)] = bytes(last)


def first_device() -> Device | None:
    """The first registered WebGPU device that is not lost."""
    for device_id in backend().device_ids():
        return webgpu_device(device_id)
    return None


def default_device() -> Device:
    """The same; requested here where there is none and Python can wait for it."""
    device = first_device()
    if device is not None:
        return device
    if not backend().can_block():
        raise BufferError(
            "no WebGPU device yet, and Python cannot wait for one here: call `await "
            "dlpack_web.webgpu.request_device()` first"
        )
    return webgpu_device(backend().request_device_blocking({}))


async def await_default_device() -> Device:
    """The same for what is awaited: it can wait anywhere."""
    return first_device() or webgpu_device(await backend().request_device({}))


def empty(
    shape: SupportsIndex | Iterable[int],
    dtype: Any = "float32",
    *,
    device: str | tuple[int, int] = "cpu",
) -> Tensor:
    """A Tensor of fresh memory: undefined elements on the CPU, zeros on WebGPU.

    dtype: a name, or anything with one, such as np.float32; sub-byte elements are
    packed. CPU memory starts at a multiple of 256 bytes. BufferError: too large;
    TypeError: unknown dtype; ValueError: a negative extent.

    >>> dlw.empty((2, 3), int).shape
    (2, 3)
    """
    sizes = views.extents(shape)
    if min(sizes, default=0) < 0:
        raise ValueError(f"extents must not be negative: shape is {sizes!r}")
    # The C core counts in 64 bits; anything of that size is too large all the same.
    sizes = tuple(min(extent, 2**63 - 1) for extent in sizes)
    if isinstance(dtype, int):
        raise TypeError(
            f"dtype must be a name such as 'float32', not {dtype!r}; a shape of several "
            f"extents is one tuple: empty({(*sizes, dtype)})"
        )
    wanted = parse_dtype(dtype)
    target = parse_device(device)
    if target is CPU:
        return made(_core._empty(sizes, wanted._packed, False))
    if target is None:
        target = default_device()
    return made(backend().empty(sizes, wanted, target.id))


def from_gpu_buffer(
    buffer: Any,
    shape: SupportsIndex | Iterable[int],
    dtype: Any,
    *,
    device: str | tuple[int, int],
    byte_offset: int = 0,
    release: Any = None,
) -> Tensor:
    """A Tensor over a GPUBuffer that somebody else made; no copy.

    device: whose buffer it is (see `webgpu.use_device`), as a GPUBuffer does not tell.
    byte_offset: of element 0. The buffer stays its maker's: it is never destroyed, and
    `release`, if given, is called once when nothing here holds it any more. ValueError:
    the elements do not fit into the buffer; TypeError: no GPUBuffer.

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
            "no WebGPU device yet, whose a GPUBuffer could be: register its device by "
            "`dlpack_web.webgpu.use_device(gpu)`"
        )
    sizes = views.extents(shape)
    return made(
        backend().from_gpu_buffer(
            buffer, sizes, wanted, target.id, byte_offset, release
        )
    )


def to_js(x: object) -> Any:
    """A JavaScript Tensor over the memory of `x`, for a JavaScript call; no copy.

    x: a Tensor, an array, any buffer or DLPack producer. `.data` of the result is the
    typed array. It holds the memory by itself: whoever gets it calls `release()`.

    >>> tensor = dlw.to_js(np.arange(3.0))
    >>> tensor.data.length
    3
    >>> tensor.release()
    """
    with share(x) as tensor:
        return browser.call_with("tensorAt", (tensor,))


def from_js(obj: Any) -> Tensor:
    """A Tensor over a JavaScript Tensor, a typed array, or any object that has the
    method [Symbol.for("dlpack.exchange")]: tensors of the libraries that an `adapter`
    was made for have it.

    Zero-copy for memory that Python can see and for GPU tensors; data in JavaScript's
    own memory is copied once. A JavaScript Tensor stays its owner's to release; one that
    nobody keeps lets go when JavaScript collects it. A bare GPUBuffer does not say what
    is in it: `from_gpu_buffer`.

    >>> import js
    >>> dlw.from_js(js.Float32Array.new(3)).numpy()
    array([0., 0., 0.], dtype=float32)
    """
    if isinstance(obj, Tensor):
        return from_dlpack(obj)
    take = browser.method("fromJs")
    if browser.is_js(obj):
        return made(browser.receive_whole(take, obj))
    try:
        return share(obj)
    except TypeError:
        raise TypeError(
            f"from_js takes an object of JavaScript, not {type_of(obj)}: "
            "dlw.from_dlpack(np.asarray(x)) shares the elements of Python's own"
        ) from None


def to_host(
    *tensors: Tensor,
) -> "Coroutine[Any, Any, tuple[np.ndarray[Any, Any], ...]]":
    """To be awaited: each tensor's elements as an ndarray, all read back in one submit
    and one map.

    >>> a, b = await dlw.to_host(dlw.from_buffer(b"abc"), dlw.from_buffer(b"d"))
    >>> a, b
    (array([97, 98, 99], dtype=uint8), array([100], dtype=uint8))
    """
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"to_host takes Tensors, not {type(each).__name__!r}: "
                "dlpack_web.from_dlpack(x) makes one"
            )
    return Reading(_to_host(tensors))


async def _to_host(tensors: Any) -> "tuple[np.ndarray[Any, Any], ...]":
    return tuple(await _read(tensors, [None] * len(tensors)))


async def _read(tensors: Any, outs: Any) -> "list[np.ndarray[Any, Any]]":
    arrays, sources, targets = [], [], []
    for tensor, out in zip(tensors, outs, strict=True):
        if out is not None:
            _check_out(tensor, out)
        if tensor.device.is_host:
            arrays.append(tensor)
            continue
        target, array = _landing(tensor, out)
        sources.append(tensor)
        targets.append(target)
        arrays.append(array)
    if sources:
        await backend().read(sources, targets)
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
    contiguous = out is not None and out.flags.c_contiguous and out.flags.aligned
    array = out if contiguous else np.empty(tensor.shape, dtype)
    return from_buffer(array), array


def _check_out(tensor: Tensor, out: "np.ndarray[Any, Any]") -> None:
    if out.shape != tensor.shape or np_dtype(tensor.dtype) != out.dtype:
        raise ValueError(
            f"out has shape {out.shape} and dtype {out.dtype}; the tensor has "
            f"{tensor.shape} and {tensor.dtype}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; give a writable array")


def _place(x: Any, device: Any, copy: bool | None, dtype: Any) -> Tensor:
    """`from_dlpack(x, device=device, copy=copy, dtype=dtype)` where one of device and
    dtype is given: only a CPU copy is asked of x itself; to a GPU the consumer moves."""
    target = None if device is None else parse_device(device)
    asked = CPU if target is CPU else None
    uploads = device is not None and target is not CPU
    if dtype is None and not uploads:
        tensor = made(_core._from_dlpack_on(x, asked, copy, False))
        if tensor.device.is_host:
            return tensor
        with tensor:
            return tensor.to_device(CPU, copy=copy)
    # What is only copied from may be misaligned.
    with made(_core._from_dlpack_on(x, asked, None, True)) as tensor:
        if not uploads and tensor.device.is_host and parse_dtype(dtype) == tensor.dtype:
            here = CPU if target is CPU else tensor.device
            return made(_core._from_dlpack_on(tensor, here, copy, False))
        where = str(tensor.device) if device is None else device
        return tensor.to_device(where, copy=copy, dtype=dtype)


_core._bind(Tensor, explain, _place)
Tensor.__module__ = "dlpack_web"
