"""Arrow arrays as Tensors, and back, by the PyCapsule protocol of its libraries:
pyarrow, polars, pandas, DuckDB, nanoarrow, arro3 and others."""

from typing import Any, Literal

from .. import _core
from .._layout.words import type_of
from .tensor import Tensor

_WAYS = "__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__"


def from_arrow(
    x: Any, *, column: str | None = None, nulls: Literal["keep", "refuse"] = "keep"
) -> Tensor:
    """A Tensor over the memory of an Arrow array or column; read-only, as Arrow's is.

    x: an object with `__arrow_c_array__`, `__arrow_c_stream__` (a column, a table, a
    result) or `__arrow_c_device_array__` on the CPU. column: its name, in a table or
    struct of several. One chunk of integers or floats is not copied. Several chunks are
    joined, and bool, which Arrow stores as bits, becomes bytes; each takes one copy.
    Fixed-size lists become further axes. `arrow.fixed_shape_tensor` keeps its shape and
    permutation, and `arrow.bool8` is bool, without a copy if its bytes are 0 and 1;
    other extension types become their storage. nulls: "keep" leaves their bytes in
    place and marks them in `Tensor.validity`, including null rows of a struct; "refuse"
    raises BufferError if there are any. If an object's `__arrow_c_array__` raises, its
    stream is used. BufferError: a type without a DLPack dtype (strings, decimals,
    dictionaries, ...), nulls within lists, another device; TypeError: x does not
    support the protocol.

    >>> class Column:  # what pyarrow, polars, DuckDB, ... have
    ...     def __arrow_c_array__(self, requested_schema=None):
    ...         return dlw.from_dlpack(np.arange(3)).__arrow_c_array__()
    >>> dlw.from_arrow(Column()).numpy().tolist()
    [0, 1, 2]
    """
    if column is not None and not isinstance(column, str):
        raise TypeError(f"column must be a name, not {column!r}")
    if nulls not in ("keep", "refuse"):
        raise ValueError(f"nulls must be 'keep' or 'refuse', not {nulls!r}")
    tensor, validity = _imported(x, column)
    if validity is None:
        return tensor
    if nulls == "refuse":
        count = validity.shape[0] - bytes(memoryview(validity)).count(1)
        raise BufferError(
            f"{count} of {validity.shape[0]} elements are null: fill or drop them first, "
            "or use nulls='keep' and look at Tensor.validity"
        )
    tensor._validity = validity
    return tensor


def _imported(x: Any, column: str | None) -> tuple[Tensor, Tensor | None]:
    if hasattr(x, "__arrow_c_array__"):
        try:
            capsules = x.__arrow_c_array__()
        except (BufferError, NotImplementedError, TypeError, ValueError):
            # nanoarrow's Array has both methods, and raises here if it has several chunks.
            if not hasattr(x, "__arrow_c_stream__"):
                raise
        else:
            return _pair(_core._from_arrow_array(*_two(capsules), column))
    if hasattr(x, "__arrow_c_stream__"):
        return _pair(_core._from_arrow_stream(x.__arrow_c_stream__(), column))
    if hasattr(x, "__arrow_c_device_array__"):
        capsules = x.__arrow_c_device_array__()
        return _pair(_core._from_arrow_array(*_two(capsules), column))
    raise TypeError(
        f"cannot take {type_of(x)} as Arrow data: it has none of "
        f"{', '.join(_WAYS)}; from_dlpack() takes objects with __dlpack__"
    )


def _pair(made: Any) -> tuple[Tensor, Tensor | None]:
    values, validity = made
    assert isinstance(values, Tensor)
    assert validity is None or isinstance(validity, Tensor)
    return values, validity


def _two(capsules: Any) -> tuple[Any, Any]:
    if isinstance(capsules, tuple) and len(capsules) == 2:
        return capsules
    raise TypeError(f"an Arrow array must be two capsules, not {capsules!r}")


class ArrowArray:
    """A Tensor for Arrow's libraries, made by `to_arrow`."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._tensor.__arrow_c_array__(requested_schema)

    def __arrow_array__(self, type: Any = None) -> Any:
        return self._tensor.__arrow_array__(type)


def to_arrow(tensor: Tensor) -> ArrowArray:
    """An object from which Arrow's libraries make an array, without a copy unless the
    elements are not contiguous or are bool.

    `pyarrow.array`, `polars.Series`, `nanoarrow.array` and others take the result, or
    the Tensor itself. Axes after the first become fixed-size lists; `Tensor.validity`
    is passed on. The memory stays alive as long as the array. Do not write to it:
    Arrow's arrays are immutable. BufferError: a WebGPU tensor, no axes, a dtype that
    Arrow lacks, or a library that requests another type, because nothing is converted.

    >>> schema, array = dlw.to_arrow(dlw.empty((2, 3))).__arrow_c_array__()
    >>> type(array).__name__
    'PyCapsule'
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"to_arrow takes a Tensor, not {type_of(tensor)}: make one with "
            "from_dlpack() or from_buffer()"
        )
    _core._to_arrow(tensor, tensor.validity, None)  # raises if it cannot be exported
    return ArrowArray(tensor)
