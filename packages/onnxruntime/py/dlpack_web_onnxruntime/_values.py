"""OrtValue, a Tensor with onnxruntime's interface; OrtDevice, and vectors of OrtValues."""

from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

import numpy as np

from dlpack_web import Tensor, empty, from_dlpack
from dlpack_web.internal import parse_device, share
from dlpack_web.internal import type_of as kind_of

from ._arrays import dtype_meant, number_of, shared, type_of, widened
from ._state import unsupported


class OrtValue:
    """A tensor on the CPU or on a GPU, for the feeds and results of
    `run_with_ort_values` and of an `IOBinding`. Its memory is released when it is
    collected.

    >>> import dlpack_web_onnxruntime as ort
    >>> value = ort.OrtValue.ortvalue_from_numpy(np.arange(3.0))
    >>> value.data_type(), value.shape(), value.device_name()
    ('tensor(double)', [3], 'cpu')
    """

    def __init__(self, tensor: "Tensor | np.ndarray[Any, Any]") -> None:
        if not isinstance(tensor, Tensor) and not _has_strings(tensor):
            raise ValueError(
                f"an OrtValue takes a Tensor or an array of strings, not {kind_of(tensor)}: "
                "use OrtValue.ortvalue_from_numpy()"
            )
        self._tensor = tensor  # for strings, an array of objects

    @classmethod
    def ortvalue_from_numpy(
        cls,
        numpy_obj: "np.ndarray[Any, Any]",
        /,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> "OrtValue":
        """Over the memory of an array; strided and misaligned arrays and those of another byte
        order are copied.

        Parameters
        ----------
        numpy_obj : ndarray
            Of numbers.
        device_type : str
            "cpu", or "webgpu": uploaded, one copy.
        device_id : int
            An index of `dlpack_web.webgpu`'s devices; 0 is the default device.
        vendor_id : int
            Has no effect.
        """
        _check_numeric("Creation", numpy_obj)
        packed = numpy_obj.flags.c_contiguous
        tensor = shared(numpy_obj if packed else numpy_obj.copy())
        number_of(tensor.dtype)
        device = named_device(device_type, device_id)
        return cls(tensor if device == "cpu" else tensor.to_device(device))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: "np.ndarray[Any, Any]", onnx_element_type: int
    ) -> "OrtValue":
        """Over the memory of an array whose bytes are elements of another type: one of
        ONNX's numbers, for elements of the same size."""
        _check_numeric("Creation", data)
        dtype = np.dtype(str(dtype_meant(onnx_element_type)))
        same_sign = "uint64" if data.dtype.kind == "u" else "int64"
        array = shared(data, same_sign if dtype.itemsize == 8 else None).numpy()
        if array.dtype.itemsize != dtype.itemsize:
            raise RuntimeError(
                f"Items size in the incoming array: {array.dtype.itemsize} specified by "
                f"onnxtype: {dtype.itemsize}"
            )
        return cls(share(array.view(dtype)))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> "OrtValue":
        """Raises NotImplemented: onnxruntime-web has no sparse tensors."""
        raise unsupported("onnxruntime-web has no sparse tensors")

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> "OrtValue":
        """New memory: undefined elements on the CPU, zeros on WebGPU.

        Parameters
        ----------
        shape : list of int
            The extents.
        element_type : dtype or int
            A NumPy type, or one of ONNX's numbers.
        device_type, device_id, vendor_id
            As for `ortvalue_from_numpy`.
        """
        dtype = dtype_meant(element_type)
        extents = _extents(shape)
        return cls(empty(extents, dtype, device=named_device(device_type, device_id)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> "OrtValue":
        """Over the memory of a Tensor, an array or any object with `__dlpack__`; no
        copy."""
        tensor = from_dlpack(data)
        number_of(tensor.dtype)
        return cls(tensor)

    # --- facts ------------------------------------------------------------------------

    @property
    def tensor(self) -> Tensor:
        """Its dlpack_web Tensor, which this value still owns."""
        if isinstance(self._tensor, Tensor):
            return self._tensor
        raise BufferError("an OrtValue of strings has no Tensor: use numpy()")

    def shape(self) -> list[int]:
        """Its extents."""
        return list(self._tensor.shape)

    def data_type(self) -> str:
        """The type, such as "tensor(float)"."""
        return type_of(self._dtype)

    def element_type(self) -> int:
        """ONNX's number for the dtype."""
        return number_of(self._dtype)

    @property
    def _dtype(self) -> str:
        return self._tensor.dtype if isinstance(self._tensor, Tensor) else "string"

    def device_name(self) -> str:
        """ "cpu" or "webgpu"."""
        if isinstance(self._tensor, Tensor) and not self._tensor.device.is_host:
            return "webgpu"
        return "cpu"

    def tensor_size_in_bytes(self) -> int:
        """Bytes of all elements."""
        return self.tensor.nbytes

    def data_ptr(self) -> int:
        """The address of the elements, in row-major order, on the CPU; RuntimeError for a
        GPUBuffer, which has none, and for strided elements."""
        if self.device_name() != "cpu":
            raise RuntimeError(
                "a GPUBuffer has no address: use value.tensor.gpu_buffer"
            )
        array = self.tensor.numpy()
        if not array.flags.c_contiguous:
            raise RuntimeError(
                f"the elements are not in row-major order (strides {self.tensor.strides}): "
                "use OrtValue.ortvalue_from_numpy(value.numpy()), which copies them"
            )
        return int(array.ctypes.data)

    def has_value(self) -> bool:
        """True."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """False: onnxruntime-web has none."""
        return False

    def as_sparse_tensor(self) -> NoReturn:
        """Raises RuntimeError: it is dense."""
        raise RuntimeError(
            "This OrtValue does not contain SparseTensor. Check data_type() value."
        )

    def is_tensor_sequence(self) -> bool:
        """False: onnxruntime-web has none."""
        return False

    # --- elements ---------------------------------------------------------------------

    def numpy(self) -> "np.ndarray[Any, Any]":
        """An array over the same memory; a copy of a GPU's, if Python can block (else
        use `await value.tensor.to_host()`)."""
        return (
            self._tensor.numpy() if isinstance(self._tensor, Tensor) else self._tensor
        )

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        if isinstance(self._tensor, Tensor):
            return self._tensor.__array__(dtype, copy=copy)
        return np.array(self._tensor, dtype=dtype, copy=copy)

    def update_inplace(self, data: Any) -> None:
        """Writes other elements over these, in order. NumPy's default integers, which have 32 bits
        here, are converted to 64, as in a feed.

        Parameters
        ----------
        data : ndarray, Tensor or OrtValue
            Of the same number of elements and dtype.

        Raises
        ------
        RuntimeError
            Another size.
        """
        given = data.tensor if isinstance(data, OrtValue) else data
        if not isinstance(given, (np.ndarray, Tensor)):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        mine = self.tensor
        if isinstance(given, np.ndarray):
            _check_numeric("Inplace update", given)
            given = shared(given, mine.dtype)
        else:
            given = widened(given, mine.dtype)
        if given.nbytes != mine.nbytes:
            raise RuntimeError(
                "The input size of numpy arrays does not match the size of the OrtValue."
            )
        if given.shape != mine.shape and given.dtype == mine.dtype:
            on_host = given.device.is_host
            given = (given.numpy() if on_host else given).reshape(mine.shape)
        mine.write(given)

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __repr__(self) -> str:
        return f"OrtValue({self.data_type()}, {self.shape()}, {self.device_name()})"


def _has_strings(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "OUS"


def _check_numeric(action: str, array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OUSMmT":
        raise RuntimeError(
            f"{action} of OrtValues is currently only supported from non-string numpy arrays"
        )


def _extents(shape: Any) -> tuple[int, ...]:
    extents = tuple(index(each) for each in shape)  # TypeError for other than ints
    if any(each < 0 for each in extents):
        raise RuntimeError(f"Tensor shape.Size() must be >= 0: {extents}")
    return extents


def named_device(device_type: str, device_id: int = 0) -> str:
    """dlpack_web's name for the device."""
    kind = device_type.lower()
    if kind == "cpu":
        return "cpu"
    if kind not in ("webgpu", "gpu"):
        raise RuntimeError(f"Unsupported device type: {device_type}")
    return "webgpu" if device_id == 0 else str(parse_device(f"webgpu:{device_id}"))


def array_of(strings: Any) -> "np.ndarray[Any, Any]":
    """The result of JavaScript's `strings`, as an array of objects."""
    found = strings.to_py()
    array = np.empty(len(found["data"]), object)
    array[:] = found["data"]
    return array.reshape(found["dims"])


_TYPES = {"cpu": 0, "gpu": 1, "webgpu": 1, "cuda": 1, "dml": 1, "npu": 2, "cann": 2}


class OrtDevice:
    """The place of memory; made by `OrtDevice.make("cpu", 0)`.

    >>> import dlpack_web_onnxruntime as ort
    >>> ort.OrtDevice.make("webgpu", 0).device_type()
    1
    """

    def __init__(self, kind: int, device_id: int, vendor_id: int) -> None:
        self._kind, self._id, self._vendor = kind, device_id, vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """A device by its name: "cpu", "webgpu", "gpu"."""
        if ort_device_name not in _TYPES:
            raise RuntimeError(f"Unsupported device type: {ort_device_name}")
        return OrtDevice(_TYPES[ort_device_name], index(device_id), max(vendor_id, 0))

    def device_type(self) -> int:
        """0 for a CPU, 1 for a GPU."""
        return self._kind

    def device_id(self) -> int:
        """The index of the device among those of its type."""
        return self._id

    def device_vendor_id(self) -> int:
        """0 unless specified."""
        return self._vendor

    def device_mem_type(self) -> int:
        """0, the device's own memory."""
        return 0

    def _get_c_device(self) -> "OrtDevice":
        return self


class OrtValueVector(list[OrtValue]):
    """A list of OrtValues, for `run_with_ortvaluevector`."""

    def push_back(self, value: OrtValue) -> None:
        """Appends a value."""
        self.append(value)

    def reserve(self, count: int) -> None:
        """Nothing: a list grows as it needs."""

    def shrink_to_fit(self) -> None:
        """Nothing."""


def copy_tensors(
    src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None
) -> None:
    """Copies the elements of OrtValues into others, also between CPU and GPU if Python
    can block."""
    if len(src) != len(dst):
        raise RuntimeError("src and dst must have the same size")
    for source, target in zip(src, dst, strict=True):
        if target.device_name() == "cpu" and source.device_name() != "cpu":
            target.update_inplace(source.numpy())
        else:
            target.update_inplace(source)
