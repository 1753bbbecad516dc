"""Bytes of a tensor in row-major order, read part by part."""

from collections.abc import Iterator
from math import prod
from typing import Any

from dlpack_web import DType, Tensor, from_buffer, from_dlpack
from dlpack_web.internal import is_row_major, memory_of

# Bytes of a strided tensor that are packed in one go.
_MOST_PACKED = 8 << 20
_NOTHING = memoryview(b"")


class Source:
    """A hold on what is written."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.nbytes = tensor.nbytes
        # Where the bytes begin that were packed last, and these.
        self._packed = 0, _NOTHING

    def between(self, first: int, last: int) -> memoryview:
        """A view of contiguous bytes, else a copy of these and the next ones, as strided
        memory is read faster in one go."""
        tensor = self._tensor
        if is_row_major(tensor):
            return memory_of(tensor)[first:last]
        begin, packed = self._packed
        if not begin <= first <= last <= begin + len(packed):
            end = min(max(last, first + _MOST_PACKED), self.nbytes)
            begin, packed = first, _bytes_of(tensor, first, end)
        self._packed = (begin, packed) if last < self.nbytes else (0, _NOTHING)
        return packed[first - begin : last - begin]

    def release(self) -> None:
        self._tensor.release()
        self._packed = 0, _NOTHING


def source_of(given: Any, dtype: DType, shape: tuple[int, ...]) -> Source:
    """A hold of our own on what is written."""
    try:
        source = from_dlpack(given)
    except (TypeError, AttributeError):
        source = from_buffer(given)
    right = source.dtype == dtype and source.size == prod(shape)
    if right and source.device.is_host:
        return Source(source)
    told = str(source)
    on_host = source.device.is_host
    source.release()
    if not on_host:
        raise BufferError(f"{told} is on a GPU: send what its `await to_host()` gives")
    raise BufferError(
        f"{told} cannot be written to {dtype}{list(shape)} of the other side: dtype and "
        "number of elements must be the same"
    )


def _bytes_of(tensor: Tensor, first: int, last: int) -> memoryview:
    """A copy of bytes in row-major order."""
    step = tensor.itemsize
    first, last = first // step, last // step
    parts = [*_between(tensor, first, last, (last - first) // 16)]
    return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))


def _between(tensor: Tensor, first: int, last: int, small: int) -> Iterator[memoryview]:
    """Elements from `first` to `last`: a part of a row, whole rows, a part of a row. Rows
    of at most `small` elements are copied as a whole."""
    if first >= last:
        return
    row = prod(tensor.shape[1:])
    start, stop = first // row, -(-last // row)
    if row > small and first > start * row:
        end = min(last, (start + 1) * row)
        with tensor[start] as inner:
            yield from _between(inner, first - start * row, end - start * row, small)
        yield from _between(tensor, end, last, small)
    elif row > small and last < stop * row:
        middle = (stop - 1) * row
        yield from _between(tensor, first, middle, small)
        with tensor[stop - 1] as inner:
            yield from _between(inner, 0, last - middle, small)
    else:
        with tensor[start:stop] as rows:
            packed = memory_of(from_dlpack(rows, copy=True))
        skip, step = first - start * row, tensor.itemsize
        yield packed[skip * step : (skip + last - first) * step]
