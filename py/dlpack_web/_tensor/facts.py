"""Properties and lifetime of a Tensor: a base class of Tensor, which makes no
others."""

from math import prod
from typing import TYPE_CHECKING, Any, Self

from .._layout import DLDeviceType, views
from .._layout.dtype import Array, DType, dtype_of
from .arrays import numbers
from .device import Device
from .hints import Hints

if TYPE_CHECKING:
    from .._core import _Tensor as _Base
else:
    from .._core import Tensor as _Base


class Facts(_Base, Hints):
    """Device, dtype, sizes and, for a single element, its number."""

    __slots__ = ()

    if TYPE_CHECKING:  # provided by Tensor

        def numpy(self) -> Array: ...

    @property
    def device(self) -> Device:
        """The device of the elements: str() gives "cpu" or "webgpu:0".

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
        """Steps between neighbours in elements, a tuple of ints. NumPy's strides count
        bytes: making an array of these raises TypeError.

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
        """Bytes of a single element.

        >>> dlw.empty(3, "float64").itemsize
        8
        """
        return 1 if self.padded else self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; elements of less than a byte share bytes.

        >>> dlw.empty(3, "float64").nbytes, dlw.empty(3, "uint4").nbytes
        (24, 2)
        """
        return -(-self._bits() // 8)  # rounded up

    def _bits(self) -> int:
        dtype = self.dtype
        return self.size * (8 if self.padded else dtype.bits * dtype.lanes)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a Tensor without dimensions: use t.size")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"the truth value of a Tensor of {self.size} elements is ambiguous: use `t "
                "is not None`, or np.asarray(t).any()"
            )
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.shape or self.dtype.code > 1:
            raise TypeError(
                "only a Tensor of one integer, of shape (), can be an index, not one of "
                f"{self.dtype} and shape {self.shape}"
            )
        return int(self._number())

    def __format__(self, spec: str) -> str:
        return format(self._number(), spec) if spec else str(self)

    def _number(self) -> Any:
        if self.size != 1:
            raise TypeError(
                "only a Tensor of one element can be converted to a number, not one of "
                f"{self.size}: use t[i], or np.asarray(t)"
            )
        return numbers(self.numpy()).item()

    def _row_major(self) -> bool:
        """Whether the elements are contiguous, in row-major order."""
        return views.is_row_major(self.shape, self.strides)

    def _facts_alone(self) -> str:
        """The repr without elements, for error messages."""
        return f"Tensor({self._said_facts()})"

    def _said_facts(self) -> str:
        what = f"shape={self.shape}, dtype={self.dtype!r}, device='{self.device}'"
        return f"{what}{', read_only' if self.read_only else ''}"

    # --- lifetime -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        _ = self.shape  # raises ReleasedError
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()
