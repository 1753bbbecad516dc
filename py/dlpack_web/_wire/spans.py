"""Which version was written where."""


class Spans:
    """Ranges of integers, each with a version; the rest has 0."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        return len(self._spans)

    def end_at(self, position: int) -> int:
        """The end of the range that has `position`, else `position`."""
        for begin, end, _ in self._spans:
            if begin <= position < end:
                return end
        return position

    def below(self, begin: int, end: int, version: int) -> list[tuple[int, int]]:
        """The parts of begin to end that have a lower version, in order."""
        parts = []
        at = begin
        for start, stop, has in self._spans:
            if has < version or stop <= at or start >= end:
                continue
            if start > at:
                parts.append((at, start))
            at = stop
        if at < end:
            parts.append((at, end))
        return parts

    def mark(self, begin: int, end: int, version: int) -> None:
        """Raises what is lower there to this version."""
        cut = [(*part, version) for part in self.below(begin, end, version)]
        for start, stop, has in self._spans:
            if has >= version or stop <= begin or start >= end:
                cut.append((start, stop, has))
                continue
            if start < begin:
                cut.append((start, begin, has))
            if stop > end:
                cut.append((end, stop, has))
        spans: list[tuple[int, int, int]] = []
        for start, stop, has in sorted(cut):
            if spans and spans[-1][1] == start and spans[-1][2] == has:
                spans[-1] = (spans[-1][0], stop, has)
            else:
                spans.append((start, stop, has))
        self._spans = spans

    def forget(self, up_to: int) -> None:
        """Forgets ranges of these versions, which then have version 0."""
        self._spans = [span for span in self._spans if span[2] > up_to]
