"""Parts of tensors in files: which bytes they have. Steps backwards, single positions and
new axes are views of what is loaded: bytes are only read forwards."""

from collections.abc import Iterator, Sequence
from itertools import product
from operator import index
from typing import Any, NamedTuple

from .._layout import views
from .headers import Entry

# Pyodide makes a BigInt of any larger one.
_MOST = 2**53 - 2
# Bytes that are read in less time than one more read takes, on a disk and in memory.
NEAR = 1 << 15


class Axis(NamedTuple):
    """Positions of one axis that are loaded."""

    start: int
    size: int
    step: int


class Part(NamedTuple):
    """axes: of the file. key: the part as a view of what is loaded of these."""

    axes: list[Axis]
    key: tuple[slice | int | None, ...]

    @property
    def loaded(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        counts = iter(self.loaded)
        pairs = [(1 if each is None else next(counts), each) for each in self.key]
        return tuple(count for count, each in pairs if each != 0)


def part_of(key: Any, shape: Sequence[int]) -> Part:
    """What an index selects; IndexError and TypeError as for `t[key]`."""
    axes: list[Axis] = []
    view: list[slice | int | None] = []
    for item in views.expand(key, len(shape)):
        if item is None:
            view.append(None)
            continue
        extent = shape[len(axes)]
        if isinstance(item, slice):
            start, stop, step = item.indices(extent)
            count = max(0, -((start - stop) // step))
            if step < 0:
                start += max(count - 1, 0) * step
            view.append(slice(None, None, -1 if step < 0 else None))
            axes.append(Axis(start, count, abs(step)))
        else:
            start = views.position(item, extent, len(axes))
            view.append(0)
            axes.append(Axis(start, 1, 1))
    return Part(axes, tuple(view))


class Block(NamedTuple):
    """Contiguous bytes of a file, read at once, and the elements among them that are
    selected: shape and strides, in elements from the first byte on."""

    start: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def blocks_of(part: Part, entry: Entry, most: int, near: int = NEAR) -> Iterator[Block]:
    """The blocks of a part of at least one element, whose offsets from the start of the
    file ascend. Elements that are near each other share a block of at most `most`
    bytes."""
    item = each = entry.dtype.itemsize
    first = entry.start
    axes: list[tuple[int, int]] = []  # counts and strides in bytes, the fastest first
    pairs = list(zip(part.axes, entry.shape, strict=True))
    for (start, count, step), extent in pairs if entry.columns else reversed(pairs):
        first += start * each
        if count > 1:
            axes.append((count, step * each))
        each *= extent
    nbytes, count, stride = item, 1, item
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    while axes and axes[0][1] == count * item:
        count *= axes.pop(0)[0]
    at_once = count
    while axes and at_once == count:
        span = nbytes + (count - 1) * stride
        if axes[0][1] - span > near:
            break
        nbytes, shape, strides = span, (count, *shape), (stride // item, *strides)
        count, stride = axes.pop(0)
        at_once = min(count, max((most - nbytes) // stride + 1, 1))
    for place in _places(first, axes[::-1]):
        for i in range(0, count, at_once):
            size = min(at_once, count - i)
            yield Block(
                place + i * stride,
                nbytes + (size - 1) * stride,
                (size, *shape),
                (stride // item, *strides),
            )


def _places(first: int, axes: Sequence[tuple[int, int]]) -> Iterator[int]:
    steps = (range(0, count * stride, stride) for count, stride in axes)
    return (first + sum(each) for each in product(*steps))


def in_javascript(key: Any) -> tuple[list[Any], int | None, tuple[Any, ...] | None]:
    """The ranges of an index as JavaScript has them, before which of them `...` stands,
    and the index that adds new axes; None: there are none."""
    items = views.items_of(key)
    given = [each for each in items if each is not None]
    if given.count(...) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    ellipsis = given.index(...) if ... in given else len(given)
    ranges = [
        _number(each)
        if isinstance(each, int)
        else [_number(n) for n in (each.start, each.stop, each.step)]
        for each in given
        if isinstance(each, int | slice)
    ]
    after = None
    if None in items:
        kept = [each for each in items if not isinstance(each, int)]
        after = tuple(slice(None) if isinstance(e, slice) else e for e in kept)
    return ranges, ellipsis, after


def _number(given: Any) -> int | None:
    """A position, none of which is larger than JavaScript's limit."""
    return None if given is None else max(-_MOST, min(index(given), _MOST))
