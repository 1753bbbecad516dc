"""Views, computed from metadata alone: shape, strides and the offset of element 0.

All strides and offsets count elements, as in DLPack.
"""

from collections.abc import Sequence
from math import prod
from operator import index
from types import EllipsisType
from typing import Any, NamedTuple, NoReturn


class Layout(NamedTuple):
    """Shape and strides of a tensor. `offset` counts from the first element of the
    tensor that this is a view of."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


class Strides(tuple[int, ...]):
    """The strides of a Tensor. Code for ndarrays expects strides in bytes: with these
    it would silently read other elements (skimage.util.view_as_blocks)."""

    __slots__ = ()

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError(
            "the strides of a Tensor count elements, NumPy's count bytes: use "
            "np.asarray(t).strides, or tuple(t.strides) for elements"
        )


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements are contiguous, in row-major order."""
    if 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


# --- reshape ------------------------------------------------------------------------------


def reshape(old: Layout, wanted: Any) -> Layout:
    """The same elements in the same order. `wanted`: one extent or several, one of
    which may be -1. ValueError: another size. BufferError: the shape needs a copy."""
    shape = _complete(wanted, prod(old.shape))
    if prod(shape) == 0:
        return Layout(shape, _row_major(shape))
    strides = _regroup(old, shape)
    if strides is None:
        raise BufferError(
            f"cannot view shape {old.shape} with strides {old.strides} as {shape}: the "
            "strides do not allow a view; copy, for example with t.numpy().reshape(...)"
        )
    return Layout(shape, strides)


def _complete(wanted: Any, size: int) -> tuple[int, ...]:
    shape = extents(wanted)
    if shape.count(-1) == 1:
        rest = prod(extent for extent in shape if extent != -1)
        shape = tuple(
            (size // rest if rest else 0) if extent == -1 else extent
            for extent in shape
        )
    if min(shape, default=0) < 0 or prod(shape) != size:
        raise ValueError(f"cannot view {size} elements as shape {extents(wanted)}")
    return shape


def _regroup(old: Layout, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides for `shape`, of as many elements, not 0; None: a copy is needed."""
    axes = [
        (extent, stride)
        for extent, stride in zip(old.shape, old.strides, strict=True)
        if extent != 1
    ]
    strides: list[int] = []
    left = 1  # elements of the old axes, from the last on, divided by those of the new axes
    step = taken = 1
    for extent in reversed(shape):
        if extent == 1:
            strides.append(step * taken)
            continue
        if left == 1:
            count, step = axes.pop()
            while axes and axes[-1][1] == count * step:  # axes that merge into one
                count *= axes.pop()[0]
            left, taken = count, 1
        if left % extent:
            return None
        strides.append(step * taken)
        taken *= extent
        left //= extent
    return tuple(reversed(strides))


def extents(shape: Any) -> tuple[int, ...]:
    """A shape, given as one int or several, as a tuple of ints. TypeError otherwise."""
    try:
        return (index(shape),)
    except TypeError:
        pass
    try:
        return tuple(map(index, shape))
    except TypeError:
        raise TypeError(
            f"shape must be an int or a tuple of ints, not {shape!r}"
        ) from None


# --- permute_dims -----------------------------------------------------------------------------


def permute(old: Layout, axes: Any) -> Layout:
    """The axes in another order."""
    count = len(old.shape)
    order = extents(axes)
    positive = tuple(axis + count if axis < 0 else axis for axis in order)
    if sorted(positive) != list(range(count)):
        raise ValueError(f"axes must be a permutation of 0 to {count - 1}, not {order}")
    return Layout(
        tuple(old.shape[axis] for axis in positive),
        tuple(old.strides[axis] for axis in positive),
    )


# --- indexing -----------------------------------------------------------------------------------


def select(old: Layout, key: Any) -> Layout:
    """The layout of `t[key]`: ints, slices, `...` and None, as in NumPy. IndexError:
    out of bounds, or too many indices; TypeError: a key that needs a copy, or is
    invalid."""
    shape: list[int] = []
    strides: list[int] = []
    offset = axis = 0
    for item in expand(key, len(old.shape)):
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = old.shape[axis], old.strides[axis]
        if isinstance(item, slice):
            start, stop, step = item.indices(extent)
            count = len(range(start, stop, step))
            offset += start * stride
            shape.append(count)
            strides.append(stride * step)
        else:
            offset += position(item, extent, axis) * stride
        axis += 1
    # An empty view has offset 0; its own could be past the end.
    return Layout(tuple(shape), tuple(strides), 0 if 0 in shape else offset)


def position(item: int, extent: int, axis: int) -> int:
    """Counted from the start; IndexError: out of bounds."""
    found = item + extent if item < 0 else item
    if not 0 <= found < extent:
        raise IndexError(
            f"index {item} is out of bounds for axis {axis} with size {extent}"
        )
    return found


def items_of(key: Any) -> "list[int | slice | EllipsisType | None]":
    """The items of a key, each checked."""
    return [_item(each) for each in (key if isinstance(key, tuple) else (key,))]


def expand(key: Any, ndim: int) -> "list[int | slice | None]":
    """One item for each axis, and None for each new one."""
    items = items_of(key)
    given = sum(each is not None and each is not ... for each in items)
    if items.count(...) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if given > ndim:
        raise IndexError(f"too many indices: the tensor has {ndim} axes, not {given}")
    if ... not in items:
        items.append(...)
    result: list[int | slice | None] = []
    for each in items:
        if isinstance(each, EllipsisType):
            result += [slice(None)] * (ndim - given)
        else:
            result.append(each)
    return result


def _item(key: Any) -> "int | slice | EllipsisType | None":
    if key is None or key is ... or isinstance(key, slice):
        item: slice | EllipsisType | None = key
        return item
    if _may_be_int(key):
        try:
            return index(key)
        except TypeError:
            pass
    raise TypeError(
        "a Tensor is indexed by ints, slices, ... and None, which give views, not "
        f"by {type(key).__qualname__}: for a copy use t.numpy()[...]"
    )


def _may_be_int(key: Any) -> bool:
    """False for bools and for arrays with axes. PyTorch, MLX and, for its own bools,
    NumPy before 2.3 convert some of these to ints, but as keys they are masks and
    lists."""
    if isinstance(key, bool) or "bool" in str(getattr(key, "dtype", None)):
        return False
    return not getattr(key, "shape", ())
