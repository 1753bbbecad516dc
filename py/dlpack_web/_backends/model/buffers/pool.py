"""Idle buffers of a device, kept for reuse."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# GPUBufferUsage
USAGES = {"MAP_READ": 1, "COPY_SRC": 4, "COPY_DST": 8, "UNIFORM": 64, "STORAGE": 128}
MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE = USAGES.values()

_POOL_BYTES = 256 << 20  # of idle buffers that a device keeps


class Pool:
    """Idle buffers by size and usage, the least recently used kind first; each with the
    number of bytes that may be other than 0."""

    def __init__(self) -> None:
        #: Called when a buffer was given back, wherever Python collects garbage.
        self.wake: Callable[[], None] = lambda: None
        self.idle_bytes = self.created = self.reused = 0
        self.used = False  # since the last `_drop_idle`
        self._idle: OrderedDict[tuple[int, int], list[tuple[Any, int]]] = OrderedDict()

    def take(self, size: int, usage: int) -> tuple[Any, int] | None:
        self.idle_bytes -= size  # first: an interrupt may come after the call
        try:
            found = self._idle[size, usage].pop()
        except LookupError:  # no such kind, or none of it
            self.idle_bytes += size
            self.created += 1
            return None
        self.reused += 1
        self.used = True
        return found

    def give(self, buffer: Any, filled: int) -> None:
        key = size, _ = buffer.size, buffer.usage
        kind = self._idle.setdefault(key, [])
        self.idle_bytes += size
        kind.append((buffer, filled))
        if self._idle.get(key) is not kind:  # removed meanwhile
            self._move(kind)
            return
        with suppress(KeyError):
            self._idle.move_to_end(key)
        self.used = True
        if self.idle_bytes > _POOL_BYTES:
            self.trim(_POOL_BYTES)
        self.wake()

    def _move(self, kind: list[tuple[Any, int]]) -> None:
        """Gives the buffers of a kind that was removed again."""
        while kind:
            with suppress(IndexError):
                buffer, filled = kind.pop()
                size = buffer.size
                self.idle_bytes -= size
                self.give(buffer, filled)

    def trim(self, budget: int) -> None:
        """Destroys the least recently used buffers, down to `budget` bytes."""
        # Counted again, whatever went wrong.
        kinds = list(self._idle.items())
        self.idle_bytes = sum(size * len(kind) for (size, _), kind in kinds)
        for key, kind in kinds:
            while self.idle_bytes > budget and kind:
                with suppress(IndexError):
                    buffer, _ = kind.pop(0)
                    self.idle_bytes -= key[0]
                    buffer.destroy()
            if not kind:
                self._move(self._idle.pop(key, []))

    def clear(self) -> None:
        """For a lost device: its buffers are gone, too."""
        self._idle.clear()
        self.idle_bytes = 0
