"""The users' Tensor: the C core's, with the parts that need a browser or NumPy."""

from collections.abc import Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Never, SupportsIndex

from .. import _core
from .._arrow_export import ArrowExport
from .._backends import javascript, owner_of
from .._core import CopyError, ReleasedError
from .._layout import views
from .._layout.dtype import element_dtype, np_dtype
from . import show, transfer
from .arrays import byte_strides, numbers, view_array
from .facts import Facts
from .hints import Reading
from .import_errors import explain

if TYPE_CHECKING:
    import numpy as np


class Tensor(ArrowExport, Facts):
    """One hold on the memory of a tensor, on the CPU or on a WebGPU device.

    Made by `from_dlpack`, `from_buffer`, `from_js` and `empty`. Arrays, capsules and
    buffers made from a Tensor keep the memory alive on their own. `release()`, or the
    end of a `with` block, releases the Tensor early; then everything but `released`
    raises ReleasedError. A Tensor does no arithmetic; NumPy and all libraries with
    DLPack take it.

    >>> t = dlw.from_dlpack(np.arange(6.0).reshape(2, 3))
    >>> t
    Tensor([[0., 1., 2.],
            [3., 4., 5.]], shape=(2, 3), dtype='float64', device='cpu')
    >>> np.asarray(t).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """

    __slots__ = ()

    # --- views ------------------------------------------------------------------------

    def reshape(
        self, shape: SupportsIndex | Iterable[int], /, *_more: Never
    ) -> "Tensor":
        """The same elements in the same order, with another shape: a view, with its own
        hold on the same memory, on the CPU and on WebGPU.

        Parameters
        ----------
        shape : int or tuple of int
            The extents, of which one may be -1.

        Raises
        ------
        ValueError
            Another number of elements.
        BufferError
            The shape needs a copy.

        Examples
        --------
        >>> dlw.from_buffer(bytes(6)).reshape((2, -1)).shape
        (2, 3)
        """
        _one_tuple("reshape", shape, *_more)
        return self._view(views.reshape(self._layout(), shape))

    def permute_dims(self, axes: Iterable[int], /, *_more: Never) -> "Tensor":
        """The axes in another order, as in the array API: a view, with its own hold.

        Parameters
        ----------
        axes : tuple of int
            Each axis once; negative ones count from the end.

        Raises
        ------
        ValueError
            `axes` is not a permutation.

        Examples
        --------
        >>> dlw.empty((2, 3)).permute_dims((1, 0)).shape
        (3, 2)
        """
        _one_tuple("permute_dims", axes, *_more)
        return self._view(views.permute(self._layout(), axes))

    def __getitem__(self, key: Any) -> "Tensor":
        """A view, with its own hold: ints, slices, `...` and None, as in NumPy.

        >>> t = dlw.from_dlpack(np.arange(6).reshape(2, 3))
        >>> t[0, ::-1].numpy().tolist()
        [2, 1, 0]
        """
        return self._view(views.select(self._layout(), key))

    def __iter__(self) -> Iterator["Tensor"]:
        if not self.shape:
            raise TypeError(
                "iteration over a Tensor without dimensions: use t.numpy().item()"
            )
        return map(self.__getitem__, range(len(self)))

    def _layout(self) -> views.Layout:
        return views.Layout(self.shape, self.strides)

    def _view(self, layout: views.Layout) -> "Tensor":
        return _core._view(self, *layout)

    # --- NumPy ----------------------------------------------------------------------------

    def numpy(self) -> "np.ndarray[Any, Any]":
        """An ndarray over the same memory; read-only if the tensor is.

        A WebGPU tensor is read back into a new array if Python may block (JSPI), else
        it raises BufferError. That array is read-only, because writes would not reach
        the GPU; `to_host()` and np.array(t) give writable ones. dtypes that NumPy
        lacks, such as bfloat16, are those of ml_dtypes if it is installed, else raw
        bytes, void items with the name in `dtype.metadata["dlpack"]`. Lanes are a last
        axis. Packed sub-byte elements are an exception: NumPy gets a read-only,
        unpacked copy.

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
        """The same as `numpy()`, under the name that pandas and matplotlib use.

        >>> dlw.from_buffer(b"abc").to_numpy()
        array([97, 98, 99], dtype=uint8)
        """
        return self.numpy()

    def __array__(
        self, dtype: Any = None, *, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        """np.asarray(t) calls this if the buffer protocol does not suffice."""
        interrupt = self._interrupt()
        if interrupt is not None:  # NumPy dropped it when it requested the buffer
            raise interrupt
        if copy is False and not self.device.is_host:
            raise CopyError(f"reading {self.device} back makes a copy")
        if copy is False and self.dtype.bits % 8 and not self.padded:
            raise CopyError(f"unpacking {self.dtype} makes a copy")
        array = self._array() if copy else self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise CopyError(f"{array.dtype} to {dtype} makes a copy")
            return numbers(array).astype(dtype)
        fresh = not self.device.is_host and array.flags.writeable
        return array.copy() if copy and not fresh else array

    @property
    def __numpy_dtype__(self) -> "np.dtype[Any]":
        """The result of np.dtype(t), used by jnp.asarray(t) (from NumPy 2.4 on).

        >>> dlw.empty(3).__numpy_dtype__
        dtype('float32')
        """
        return element_dtype(self.dtype)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For Pillow and others that read it; only for CPU memory.

        It has no "data": an address would outlive `release()`. Pillow requests a buffer
        from the Tensor, which holds the memory.

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
        """A copy of the elements, in row-major order.

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
        """A Tensor with the same elements on another device.

        Uploading is one copy and needs no await (strided tensors are packed first, at
        most 4 MiB at a time). Reading back blocks, so it needs JSPI. On the desktop over
        wgpudawn, copy=False to "webgpu" shares writable CPU memory with the GPU: whole
        pages, if the adapter has "host-mapped-pointer". copy=False back to "cpu" waits
        for the GPU, and gives the same memory.

        Parameters
        ----------
        device : str or Device
            "cpu", "webgpu" (the default device) or "webgpu:1".
        stream : None
            The array API's; a device has one queue.
        copy : bool, optional
            False: never; True: always (CPU only). Default: only if needed.
        dtype : str or dtype, optional
            Converts the elements on the way from the CPU: float64 to float32,
            complex128 to complex64, float32 to float16 or bfloat16 (rounded) and back,
            int64 to int32, uint64 to uint32.

        Returns
        -------
        Tensor
            For you to release; on the same device another hold on the same memory.

        Raises
        ------
        BufferError
            Python cannot wait for the GPU, or a value does not fit `dtype`.
        CopyError
            A copy is needed, and `copy` is False.
        ValueError
            A `stream`.

        Examples
        --------
        >>> dlw.from_dlpack(np.arange(3.0)).to_device("cpu", dtype="float32").numpy()
        array([0., 1., 2.], dtype=float32)
        """
        return transfer.to_device(self, device, stream, copy, dtype)

    def write(self, source: object, /, *, convert: bool = False) -> None:
        """Writes the elements of `source` over those of this tensor: one copy.

        To a WebGPU tensor it is an upload that needs no new GPUBuffer and no await.

        Parameters
        ----------
        source : Tensor, array or buffer
            Of the same shape and dtype.
        convert : bool
            Whether `source` may be of a dtype that `to_device(dtype=...)` converts, or
            packed where this one is padded, or the other way round.

        Raises
        ------
        BufferError
            Another shape or dtype, a read-only or strided target. Nothing is written.

        Examples
        --------
        >>> t = dlw.empty(3)
        >>> t.write(np.arange(3.0), convert=True)
        >>> t.numpy()
        array([0., 1., 2.], dtype=float32)
        """
        transfer.write(self, source, convert)

    def to_host(
        self, out: "np.ndarray[Any, Any] | None" = None
    ) -> "Coroutine[Any, Any, np.ndarray[Any, Any]]":
        """Awaitable: the elements as an ndarray, read back from a GPU with one copy.

        Parameters
        ----------
        out : ndarray, optional
            Gets the elements; of the shape and dtype that this returns without it. If it
            is strided, or the GPU is in a widget's page, that takes one more copy. If
            this raises, or is cancelled, it keeps its elements.

        Returns
        -------
        awaitable of ndarray
            `out`, or a new array; of a CPU tensor one that shares its memory.

        Raises
        ------
        TypeError, ValueError
            Another `out`.
        KernelError, DeviceLostError
            The work that wrote the elements failed.

        Examples
        --------
        >>> await dlw.from_buffer(b"abc").to_host()
        array([97, 98, 99], dtype=uint8)
        """
        return Reading(self._to_host(out))

    async def _to_host(self, out: Any) -> "np.ndarray[Any, Any]":
        return (await transfer.read([self], [out]))[0]

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
            tensor_at = javascript.calls().tensors.tensorAt
            twin = self._js = javascript.Kept(tensor_at, id(self))
        assert isinstance(twin, javascript.Kept)
        return twin.js

    @property
    def gpu_buffer(self) -> Any:
        """The GPUBuffer of a WebGPU tensor: a JsProxy in the browser, wgpu-py's own on
        the desktop. BufferError for others.

        You may keep it: from then on the garbage collector frees it, and releasing the
        tensor neither destroys nor reuses it.

        >>> device = await dlw.webgpu.request_device()
        >>> dlw.empty(3, device=device).gpu_buffer.size
        16
        """
        if self.device.is_host:
            raise BufferError(
                "a CPU tensor has no GPUBuffer; use t.to_device('webgpu').gpu_buffer"
            )
        return owner_of(self).gpu_buffer(self)

    def to_wgpu(self) -> Any:
        """The wgpu.GPUBuffer of a WebGPU tensor on the desktop, for pygfx and others; no
        copy. Element 0 is at `byte_offset`.

        You may keep it, as that of `gpu_buffer`. BufferError: on the CPU, strided, or
        in a browser, where `gpu_buffer` is JavaScript's own.

        >>> dlw.empty(3).to_wgpu()
        Traceback (most recent call last):
        ...
        BufferError: a CPU tensor has no GPUBuffer; use t.to_device('webgpu').to_wgpu()
        """
        if self.device.is_host:
            raise BufferError(
                "a CPU tensor has no GPUBuffer; use t.to_device('webgpu').to_wgpu()"
            )
        return owner_of(self).to_wgpu(self)

    def _read_blocking(self) -> "Tensor":
        """A CPU copy of a WebGPU tensor; also what `__dlpack__` and buffers call."""
        return transfer.read_blocking(self)

    # --- shown ----------------------------------------------------------------------------

    def __str__(self) -> str:
        """The elements as NumPy prints them, and the properties.

        From a GPU at most 8 KiB are read back, and only if Python may block; otherwise
        the text ends with how to get the elements.

        >>> print(dlw.from_dlpack(np.arange(2000)))
        Tensor([   0,    1,    2, ..., 1997, 1998, 1999], shape=(2000,), dtype='int64', device='cpu')
        """
        try:
            return show.text(self)
        except ReleasedError:
            return "Tensor(released)"

    def __repr__(self) -> str:
        """The first and last elements if the CPU reads them at once, and the
        properties. It never waits for a GPU: debuggers and error messages call it."""
        try:
            return f"Tensor({show.repr_elements(self)}{self._said_facts()})"
        except ReleasedError:
            return "Tensor(released)"

    def _repr_html_(self) -> str:
        """For notebooks: properties, elements, and a thumbnail of images or a histogram
        of numbers.

        From a GPU, at most 256 KiB are read back, and only if Python may block.
        """
        try:
            facts, picture = show.table(self), show.picture(self)
            if self.device.is_host or isinstance(picture, str):
                elements = show.elements(self, picture)
                if elements and picture is show.TOO_LARGE:  # its ends were read
                    picture = "all elements: await t.to_host()"
            else:  # what was read shows both
                with share(picture) as read:
                    elements = show.elements(read)
            return show.html("dlpack_web.Tensor", facts, picture, elements)
        except ReleasedError:
            return "<code>Tensor(released)</code>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


# --- holds on existing memory; making.py has more -------------------------------------------


# C functions, without a wrapper; they make the class that is bound below.
from_dlpack = _core.from_dlpack
from_buffer = _core.from_buffer


def _one_tuple(name: str, first: object, *more: object) -> None:
    """TypeError for extents or axes that are separate arguments."""
    if more:
        raise TypeError(f"{name}() takes one tuple: use t.{name}({(first, *more)})")


def share(x: Any) -> Tensor:
    """Our own hold on the memory of any object that shares its memory."""
    return from_dlpack(x) if hasattr(x, "__dlpack__") else from_buffer(x)


_core._bind(Tensor, explain, transfer.place)
Tensor.__module__ = "dlpack_web"
