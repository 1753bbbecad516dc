"""Arrow arrays as Tensors, and back, by the PyCapsule protocol of its libraries:
pyarrow, polars, pandas, DuckDB, nanoarrow, arro3 and others."""

import json
import re
from contextlib import suppress
from itertools import accumulate
from math import prod
from typing import Any, Literal, NamedTuple, NoReturn, overload

from . import _core
from ._arrow_export import ArrowExport
from ._layout.dtype import parse_dtype
from ._layout.text import type_of
from ._tensor.tensor import Tensor, share

_WAYS = "__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__"


class Masked(NamedTuple):
    """The elements of an Arrow array, and which of them are not null: the result of
    `from_arrow` with nulls="mask". `to_arrow(*x)` makes an Arrow array of it again.

    You release each of the two Tensors.

    >>> values, valid = dlw.Masked(dlw.empty(3), dlw.from_dlpack(np.ones(3, bool)))
    >>> len(dlw.to_arrow(values, valid).__arrow_c_array__())
    2
    """

    #: The elements; where `valid` is False they have no meaning.
    values: Tensor
    #: A Tensor of bool with one element for each of axis 0: False where it is null.
    valid: Tensor


@overload
def from_arrow(
    x: Any, *, column: str | None = None, nulls: Literal["refuse"] = "refuse"
) -> Tensor: ...
@overload
def from_arrow(
    x: Any, *, column: str | None = None, nulls: Literal["mask"]
) -> Masked: ...
def from_arrow(
    x: Any, *, column: str | None = None, nulls: Literal["refuse", "mask"] = "refuse"
) -> Tensor | Masked:
    """A Tensor over the memory of an Arrow array or column; read-only, as Arrow's is.

    One chunk of integers or floats is not copied. Several chunks are joined, and bool, which
    Arrow stores as bits, becomes bytes; each takes one copy. Dates, times and durations are
    counts of their unit. Fixed-size lists become further axes. `arrow.fixed_shape_tensor`
    keeps its shape and permutation, and `arrow.bool8` is bool, without a copy if its bytes are
    0 and 1; other extension types become their storage. If an object's `__arrow_c_array__`
    raises, its stream is used.

    Parameters
    ----------
    x : object
        With `__arrow_c_array__`, `__arrow_c_stream__` (a column, a table, a result) or
        `__arrow_c_device_array__` on the CPU.
    column : str, optional
        Its name, in a table or struct of several.
    nulls : str
        "refuse": nulls raise BufferError, as null rows of a struct do. "mask": returns a
        `Masked`.

    Returns
    -------
    Tensor or Masked
        For you to release. A Masked is the pair `(values, valid)`: the elements, undefined
        where they are null, and a Tensor of bool, False where an element of axis 0 is null.

    Raises
    ------
    BufferError
        Nulls, also within lists, a type without a DLPack dtype (strings, decimals,
        dictionaries, ...), another device.
    TypeError
        `x` does not support the protocol.

    Examples
    --------
    >>> class Column:  # as in pyarrow, polars, DuckDB, ...
    ...     def __arrow_c_array__(self, requested_schema=None):
    ...         return dlw.from_dlpack(np.arange(3)).__arrow_c_array__()
    >>> dlw.from_arrow(Column()).numpy().tolist()
    [0, 1, 2]
    """
    if column is not None and not isinstance(column, str):
        raise TypeError(f"column must be a name, not {column!r}")
    if nulls not in ("refuse", "mask"):
        raise ValueError(f"nulls must be 'refuse' or 'mask', not {nulls!r}")
    values, valid = _imported(x, column)
    if nulls == "mask":
        return Masked(values, _all_valid(len(values)) if valid is None else valid)
    if valid is None:
        return values
    count = valid.size - bytes(memoryview(valid)).count(1)
    raise BufferError(
        f"{count} of {valid.size} elements are null, and a Tensor has no nulls: fill or "
        "drop them first, or use from_arrow(x, nulls='mask'), which returns the pair "
        "(values, valid)"
    )


def _all_valid(length: int) -> Tensor:
    ones = bytearray(b"\1") * length
    valid = _core._typed(ones, parse_dtype("bool")._packed, False)
    assert valid is not None  # bytes are aligned
    return valid


def _imported(x: Any, column: str | None) -> tuple[Tensor, Tensor | None]:
    if hasattr(x, "__arrow_c_array__"):
        try:
            capsules = x.__arrow_c_array__()
        except (BufferError, NotImplementedError, TypeError, ValueError):
            # nanoarrow's Array has both methods, and raises here if it has several chunks.
            if not hasattr(x, "__arrow_c_stream__"):
                raise
        else:
            return _core._from_arrow_array(*_two(capsules), column, _axes_of)
    if hasattr(x, "__arrow_c_stream__"):
        return _core._from_arrow_stream(x.__arrow_c_stream__(), column, _axes_of)
    if hasattr(x, "__arrow_c_device_array__"):
        capsules = x.__arrow_c_device_array__()
        return _core._from_arrow_array(*_two(capsules), column, _axes_of)
    raise TypeError(
        f"cannot take {type_of(x)} as Arrow data: it has none of "
        f"{', '.join(_WAYS)}; from_dlpack() takes objects with __dlpack__"
    )


def _two(capsules: Any) -> tuple[Any, Any]:
    if isinstance(capsules, tuple) and len(capsules) == 2:
        return capsules
    raise TypeError(f"an Arrow array must be two capsules, not {capsules!r}")


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def _axes_of(
    metadata: bytes, width: int, room: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The extents that the metadata of arrow.fixed_shape_tensor gives to lists of `width`
    elements, at most `room`, and which of them each axis is."""

    def refuse(why: str) -> NoReturn:
        said = metadata[:200].decode("utf-8", "replace")
        raise BufferError(
            "the Arrow producer gave an arrow.fixed_shape_tensor whose metadata "
            f"{why}: {said!r}"
        )

    # Too many levels crash Pyodide, whose stack is small. The metadata has two.
    plain = _STRING.sub("", metadata.decode("utf-8", "replace"))
    if max(accumulate(_STEPS.get(each, 0) for each in plain), default=0) > 16:
        refuse("is nested")
    found: Any = None
    with suppress(ValueError):
        found = json.loads(metadata.decode())
    if not isinstance(found, dict):
        refuse("is not an object of JSON")
    shape: Any = found.get("shape")
    names: Any = found.get("dim_names")
    order: Any = found.get("permutation")
    if order is None:  # arrow-rs 58 writes the word in the plural
        order = found.get("permutations")
    if isinstance(shape, list) and len(shape) > room:
        refuse(
            "has too many axes (a Tensor has at most 64 dimensions, of which the rows "
            "and the lists around it take some)"
        )
    if not _are_numbers(shape):
        refuse("has no shape, a list of extents")
    if prod(shape) != width:
        refuse("has a shape of another size than its lists")
    if names is not None and not (
        isinstance(names, list)
        and len(names) == len(shape)
        and all(isinstance(name, str) for name in names)
    ):
        refuse("has dim_names that are not a name for each axis")
    axes = list(range(len(shape)))
    if order is not None and not (_are_numbers(order) and sorted(order) == axes):
        refuse("has a permutation that is not one of its axes")
    return tuple(shape), tuple(axes if order is None else order)


def _are_numbers(given: Any) -> bool:
    return isinstance(given, list) and all(
        type(each) is int and 0 <= each < 2**63 for each in given
    )


class ArrowArray(ArrowExport):
    """A Tensor and its validity for Arrow's libraries; made by `to_arrow`."""

    __slots__ = "_valid", "_values"

    def __init__(self, values: Tensor, valid: Tensor | None) -> None:
        self._values, self._valid = values, valid

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return _core._to_arrow(self._values, self._valid, requested_schema)


def to_arrow(values: Tensor, valid: object = None) -> ArrowArray:
    """An object from which Arrow's libraries make an array, without a copy unless the elements
    are not contiguous or are bool.

    The memory stays alive as long as the array. Do not write to it: Arrow's arrays are
    immutable.

    Parameters
    ----------
    values : Tensor
        Axes after the first become fixed-size lists.
    valid : Tensor or array of bool, optional
        One for each element of axis 0, which is null where it is False; as Arrow's bits it is
        a copy. Default: no nulls.

    Returns
    -------
    object
        For `pyarrow.array`, `polars.Series`, `nanoarrow.array` and others, which take the
        Tensor itself, too.

    Raises
    ------
    BufferError
        A WebGPU tensor, no axes, a dtype that Arrow lacks, another `valid`, or a library that
        requests another type, because nothing is converted.

    Examples
    --------
    >>> schema, array = dlw.to_arrow(dlw.empty((2, 3))).__arrow_c_array__()
    >>> type(array).__name__
    'PyCapsule'
    """
    if isinstance(values, Masked):
        raise TypeError("to_arrow takes values and valid: use to_arrow(*x)")
    if not isinstance(values, Tensor):
        raise TypeError(
            f"to_arrow takes a Tensor, not {type_of(values)}: make one with "
            "from_dlpack() or from_buffer()"
        )
    if not (valid is None or isinstance(valid, Tensor)):
        valid = share(valid)
    _core._to_arrow(values, valid, None)  # raises if it cannot be exported
    return ArrowArray(values, valid)
