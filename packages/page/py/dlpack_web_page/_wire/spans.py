"""Which version was written where."""

from bisect import bisect_left

# Ranges that are few: to look for those to forget costs more than they do.
_FEW = 32


class Spans:
    """Ranges of integers, each with a version; the rest has 0. A call takes the time of
    a search and of the ranges that it changes."""

    def __init__(self) -> None:
        # Disjoint and in order; neighbours that touch have different versions.
        self._spans: list[tuple[int, int, int]] = []
        self._enough = _FEW

    def __len__(self) -> int:
        return len(self._spans)

    def _index(self, position: int) -> int:
        """Of the first range that ends after `position`."""
        after = bisect_left(self._spans, (position + 1,))
        before = after - 1
        return before if after and self._spans[before][1] > position else after

    def reach(self, position: int, version: int) -> int:
        """The end of what has at least this version from `position` on."""
        for index in range(self._index(position), len(self._spans)):
            start, stop, has = self._spans[index]
            if start > position or has < version:
                break
            position = stop
        return position

    def below(self, begin: int, end: int, version: int) -> list[tuple[int, int]]:
        """The parts of begin to end that have a lower version, in order."""
        parts = []
        at = begin
        for index in range(self._index(begin), len(self._spans)):
            start, stop, has = self._spans[index]
            if start >= end:
                break
            if has < version:
                continue
            if start > at:
                parts.append((at, start))
            at = stop
        if at < end:
            parts.append((at, end))
        return parts

    def mark(self, begin: int, end: int, version: int) -> None:
        """Raises what is lower there to this version."""
        if begin >= end:
            return
        spans = self._spans
        low = high = self._index(begin)
        cut: list[tuple[int, int, int]] = []
        at = begin
        while high < len(spans) and spans[high][0] < end:
            start, stop, has = spans[high]
            both = max(start, begin), min(stop, end), max(has, version)
            cut += (start, begin, has), (at, start, version), both, (end, stop, has)
            at = stop
            high += 1
        before, after = max(low - 1, 0), high + 1
        cut = [*spans[before:low], *cut, (at, end, version), *spans[high:after]]
        spans[before:after] = _merged(cut)

    def forget(self, up_to: int) -> None:
        """Ranges of these versions may have version 0 from now on: they are dropped as
        soon as there are twice as many as the last time."""
        if len(self._spans) > self._enough:
            self._spans = [span for span in self._spans if span[2] > up_to]
            self._enough = max(2 * len(self._spans), _FEW)

    def clear(self) -> None:
        self._spans.clear()
        self._enough = _FEW


def _merged(cut: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Ranges in order, without empty ones, those that touch and are equal as one."""
    merged: list[tuple[int, int, int]] = []
    for start, stop, has in cut:
        if start >= stop:
            continue
        if merged and merged[-1][1] == start and merged[-1][2] == has:
            merged[-1] = (merged[-1][0], stop, has)
        else:
            merged.append((start, stop, has))
    return merged
