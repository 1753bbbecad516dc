"""The sending half of an endpoint: tensors that the other side has, and writes to
them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

from dlpack_web import Tensor, from_dlpack
from dlpack_web.internal import tag_of

from .frame import Ack, Body, Free, Hello, Piece, Refuse, check_name
from .receiving import MOST_VERSIONS
from .source import Source, source_of

# Frames that are not acknowledged, at most.
_MOST_FLYING = 1024
# How often the time until something is sent again is doubled, at most.
_MOST_DOUBLED = 10


class Sent(Future[None]):
    """A write on its way: `await` it, or use it as a concurrent.futures.Future. Its
    result is None, as soon as the other side has all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()  # what is on its way cannot be cancelled

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.wrap_future(self).__await__()


class RemoteTensor:
    """A tensor that the other side has, under a name. ready: its first write. As soon as
    another tensor of that name is ready, this one is freed."""

    def __init__(self, sending: Sending, id: int, name: str, tensor: Tensor) -> None:
        self._sending = sending
        self._id = id
        self.name = name
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self._version = 0
        self._open: dict[int, None] = {}  # versions in progress, the oldest first
        self._ended: BufferError | None = None
        self.ready: Sent

    def write(self, source: object, /) -> Sent:
        """Writes all elements.

        Parameters
        ----------
        source : array, Tensor or buffer
            Of that dtype and number of elements. Its memory must not change until the result is
            done: it is read piece by piece.
        """
        return self._write(source, 0, self.shape)

    def __getitem__(self, rows: slice) -> Part:
        """A part to write: `remote[1000:2000].write(a)` sends these rows alone."""
        if not isinstance(rows, slice) or rows.step not in (None, 1) or not self.shape:
            raise TypeError(f"a part is a slice of the first axis, not {rows!r}")
        length, *others = self.shape
        start, stop, _ = slice(rows.start, rows.stop).indices(length)
        start = min(start, stop)
        begin = start * prod(others) * self.dtype.itemsize
        return Part(self, begin, (stop - start, *others))

    def free(self) -> None:
        """Frees the tensor on the other side. Writes in progress fail."""
        self._sending.end(self, BufferError(f"{self.name!r} was freed"))

    def _write(self, given: object, begin: int, shape: tuple[int, ...]) -> Sent:
        if self._ended is not None:
            raise BufferError(*self._ended.args) from self._ended
        source = source_of(given, self.dtype, shape)
        self._version += 1
        end = begin + source.nbytes
        write = _Write(self, self._version, begin, end, source, begin, Sent())
        self._sending.add(write)
        return write.sent


class Part:
    """Some rows of a `RemoteTensor`."""

    def __init__(
        self, remote: RemoteTensor, begin: int, shape: tuple[int, ...]
    ) -> None:
        self._facts = remote, begin, shape

    def write(self, source: object, /) -> Sent:
        """Writes these rows.

        Parameters
        ----------
        source : array, Tensor or buffer
            As for `RemoteTensor.write`.
        """
        remote, begin, shape = self._facts
        return remote._write(source, begin, shape)


@dataclass(eq=False, slots=True)
class _Write:
    remote: RemoteTensor
    version: int
    begin: int
    end: int
    source: Source
    next: int  # the first byte that was not sent
    sent: Sent
    flying: int = 0  # pieces that are not acknowledged

    def finish(self, error: BufferError | None = None) -> None:
        """Ends it, once: if an interrupt comes, it is ended again."""
        if error is not None and not self.sent.done():
            self.sent.set_exception(BufferError(*error.args))
        elif not self.sent.done():
            self.sent.set_result(None)
        self.source.release()
        self.remote._open.pop(self.version, None)


@dataclass(eq=False, slots=True)
class _Flight:
    """What was sent and is not acknowledged; without `write` it frees the tensor. at:
    when it was last sent, later if it was sent `again` before."""

    remote: RemoteTensor
    version: int
    first: int
    last: int
    write: _Write | None
    at: float = 0
    again: int = 0

    @property
    def key(self) -> tuple[int, int, int]:
        return self.remote._id, self.version, self.first


class Sending:
    """Writes in order, in pieces, with at most the window's bytes on their way."""

    def __init__(
        self,
        piece: int,
        post: Callable[[Body, memoryview], None],
        now: Callable[[], float],
    ) -> None:
        self._piece = piece
        self._post = post
        self._now = now
        self._remotes: dict[int, RemoteTensor] = {}
        # Those of each name, the oldest first.
        self._named: dict[str, list[RemoteTensor]] = {}
        self._flights: dict[tuple[int, int, int], _Flight] = {}
        self._queue: list[_Write] = []
        self._bytes = 0
        self._ids = 0
        self._credit: Hello | None = None

    def open(self, name: str, given: Any) -> RemoteTensor:
        """A new tensor of the other side."""
        check_name(name)
        with from_dlpack(given) as tensor:
            tag_of(tensor.dtype, f"sending {name!r}")
            self._ids += 1
            remote = RemoteTensor(self, self._ids, name, tensor)
            self._remotes[remote._id] = remote
            self._named.setdefault(name, []).append(remote)
            try:
                remote.ready = remote.write(tensor)
            except BaseException:
                if remote._version == 0:  # nothing was sent
                    self._forget(remote)
                else:
                    with suppress(Exception):  # the channel's; this one is better
                        self.end(remote, BufferError("a write was interrupted"))
                raise
        return remote

    def add(self, write: _Write) -> None:
        """An exception, such as the channel's, ends the tensor."""
        try:
            write.remote._open[write.version] = None
            self._queue.append(write)
            self._pump()
        except BaseException:
            with suppress(Exception):  # the channel's; this one is better
                self.end(write.remote, BufferError("a write was interrupted"))
            raise

    def connect(self, credit: Hello) -> None:
        """The other side is there (again): sends what it has not acknowledged."""
        self._credit = credit
        for flight in [*self._flights.values()]:
            self._send_again(flight)
        self._pump()

    def disconnect(self) -> None:
        self._credit = None
        for flight in self._flights.values():
            flight.again = 0

    def resend(self, before: float) -> None:
        """Sends again what was sent before; the next time waits twice as long."""
        now = self._now()
        for flight in [*self._flights.values()]:
            if flight.at <= before and self._credit is not None:
                self._send_again(flight)
                flight.again += 1
                flight.at = now + more_time(max(now - before, 0), flight.again)

    def _send_again(self, flight: _Flight) -> None:
        """Unless it was acknowledged or ended meanwhile: the channel may call us."""
        if self._credit is not None and self._flights.get(flight.key) is flight:
            self._send(flight)

    def acknowledge(self, ack: Ack) -> None:
        flight = self._flights.get((ack.id, ack.version, ack.first))
        if flight is None or flight.last != ack.last:
            return
        write = flight.write
        if write is not None and write.flying == 1 and write.next >= write.end:
            write.finish()
        if self._flights.get(flight.key) is flight:  # nothing has ended it meanwhile
            del self._flights[flight.key]
            self._bytes -= flight.last - flight.first
            if write is not None:
                write.flying -= 1
                if write.version == 1 and write.sent.done():
                    self._replace(write.remote)
        self._pump()

    def _replace(self, remote: RemoteTensor) -> None:
        """The other side has all of it, and released the earlier ones of its name."""
        named = self._named.get(remote.name, [])
        for earlier in [each for each in named if each._id < remote._id]:
            why = f"{remote.name!r} was sent again: write to the newer tensor"
            self._end(earlier, BufferError(why))

    def refused(self, refuse: Refuse) -> None:
        remote = self._remotes.get(refuse.id)
        if remote is not None and refuse.version in remote._open:
            self.end(remote, BufferError(f"the other side: {refuse.message}"))

    def end(self, remote: RemoteTensor, error: BufferError) -> None:
        """Ends a tensor, once: its writes fail, and the other side frees it."""
        self._end(remote, error)
        self._pump()

    def _end(self, remote: RemoteTensor, error: BufferError) -> None:
        if self._remotes.get(remote._id) is not remote:
            return
        remote._ended = error
        self._drop(error, lambda each: each is remote)
        remote._version += 1
        free = _Flight(remote, remote._version, 0, 0, None)
        self._flights[free.key] = free
        self._forget(remote)  # the last step: see `mend`
        if self._credit is not None:
            self._send(free)

    def reset(self, error: BufferError) -> None:
        """Ends all: the other side, or this one, is gone."""
        self._credit = None
        for remote in self._remotes.values():
            remote._ended = error
        self._remotes.clear()
        self._named.clear()
        self._drop(error, lambda each: True)

    def _forget(self, remote: RemoteTensor) -> None:
        named = self._named.get(remote.name, [])
        if remote in named:
            named.remove(remote)
        if not named:
            self._named.pop(remote.name, None)
        self._remotes.pop(remote._id, None)

    def _drop(
        self, error: BufferError, is_ended: Callable[[RemoteTensor], bool]
    ) -> None:
        writes = {write: None for write in self._queue if is_ended(write.remote)}
        self._queue = [write for write in self._queue if write not in writes]
        for key, flight in [*self._flights.items()]:
            if is_ended(flight.remote):
                if flight.write is not None:
                    writes[flight.write] = None
                del self._flights[key]
                self._bytes -= flight.last - flight.first
        for write in writes:
            write.finish(error)

    def mend(self) -> None:
        """Completes what an interrupt has left half done."""
        flights = [*self._flights.values()]
        flying = Counter(each.write for each in flights)
        for each in flights:
            if each.write is not None:
                each.write.flying = flying[each.write]
                each.write.next = max(each.write.next, each.last)
        self._bytes = sum(each.last - each.first for each in flights)
        self._queue = [
            each for each in self._queue if not each.flying or each.next < each.end
        ]
        for remote in [*self._remotes.values()]:
            if remote._ended is not None:
                self.end(remote, remote._ended)
        for each in flights:
            if each.at == 0 and each.key in self._flights and self._credit is not None:
                self._send(each)
        self._pump()

    def _pump(self) -> None:
        while self._queue and (credit := self._credit) is not None:
            write = self._queue[0]
            remote, version, first = write.remote, write.version, write.next
            # Pieces end at multiples of their size: whole elements, and whole words of
            # a GPU.
            size = min(self._piece, credit.piece) // 64 * 64
            last = min(write.end, (first // size + 1) * size)
            full = self._bytes + last - first > credit.window
            if self._flights and (full or len(self._flights) >= _MOST_FLYING):
                return
            if version >= next(iter(remote._open)) + MOST_VERSIONS:
                return
            flight = _Flight(remote, version, first, last, write)
            self._flights[flight.key] = flight  # the first step: see `mend`
            write.next = last
            write.flying += 1
            self._bytes += last - first
            if last >= write.end:
                del self._queue[0]
            self._send(flight)

    def _send(self, flight: _Flight) -> None:
        remote, write = flight.remote, flight.write
        if write is None:
            self._post(Free(remote._id, flight.version), memoryview(b""))
            flight.at = self._now()
            return
        piece = Piece(
            remote.name,
            remote.dtype,
            remote.shape,
            remote._id,
            flight.version,
            write.begin,
            write.end,
            flight.first,
            flight.last,
        )
        first, last = flight.first - write.begin, flight.last - write.begin
        self._post(piece, write.source.between(first, last))
        flight.at = self._now()  # not if the channel raises: it is sent again soon


def more_time(timeout: float, again: int) -> float:
    """How much longer than `timeout` to wait after something was sent again so often."""
    return timeout * ((1 << min(again, _MOST_DOUBLED)) - 1)
