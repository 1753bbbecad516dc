"""The receiving half of an endpoint: tensors that the other side writes."""

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from dlpack_web import Tensor, empty
from dlpack_web.internal import memory_of

from .frame import Piece, nbytes_of
from .spans import Spans

# Versions of a tensor that may be incomplete at once: senders wait, receivers refuse
# more.
MOST_VERSIONS = 1024
# Tensors that a peer may make us keep, gaps among those that it freed, and entries about
# what is incomplete.
_MOST_TENSORS, _MOST_GAPS, _MOST_ENTRIES = 8192, 16384, 65536


class Received(NamedTuple):
    """A tensor after a write to it has arrived completely.

    Attributes
    ----------
    name : str
    id, version : int
        Numbers of the tensor and of the write.
    begin, end : int
        The bytes that this version wrote.
    tensor : Tensor
        The endpoint's, valid until another one of that name has arrived, the other side frees
        it, or `close()`.
    """

    name: str
    id: int
    version: int
    begin: int
    end: int
    tensor: Tensor


class _Incoming:
    def __init__(self, piece: Piece, nbytes: int, tensor: Tensor) -> None:
        self.identity = (piece.name, piece.dtype, piece.shape)
        self.nbytes = nbytes
        self.tensor = tensor
        self.flat = tensor.reshape(tensor.size)
        self.written = Spans()  # by byte
        self.filled = 0  # up to here each byte was written
        # Versions that are complete, while others bytes were never written.
        self.early: list[Received] = []
        self.settled = 0  # all versions up to this one are complete
        self.done: set[int] = set()  # later ones that are complete
        # What incomplete versions write: begin, end, and up to where they have.
        self.pending: dict[int, tuple[int, int, int]] = {}

    @property
    def name(self) -> str:
        return self.identity[0]

    @property
    def entries(self) -> int:
        more = len(self.done) + len(self.pending) + len(self.early)
        return len(self.written) + more

    def is_complete(self, version: int) -> bool:
        return version <= self.settled or version in self.done

    def write(self, piece: Piece, payload: memoryview) -> None:
        lower = self.written.below(piece.first, piece.last, piece.version)
        if not lower:
            return
        is_host = self.flat.device.is_host
        memory = memory_of(self.flat) if is_host else None
        for begin, end in lower:
            source = payload[begin - piece.first : end - piece.first]
            if memory is not None:
                memory[begin:end] = source
            else:
                self._upload(begin, end, source)

    def _upload(self, begin: int, end: int, source: memoryview) -> None:
        step = self.flat.itemsize
        part = self.flat[begin // step : end // step]
        with part, empty(part.shape, part.dtype) as landing:
            memory_of(landing)[:] = source
            part.write(landing)

    def complete(self, piece: Piece) -> list[Received]:
        """Enters the piece. The versions that are complete with it, as soon as all bytes
        of the tensor were written."""
        version, begin, end = piece.version, piece.begin, piece.end
        self.written.mark(piece.first, piece.last, version)
        _, _, at = self.pending.get(version, (begin, end, begin))
        at = self.written.reach(at, version)
        if at < end:
            self.pending[version] = begin, end, at
        else:
            self.pending.pop(version, None)
            self._settle(version)
            self.early.append(
                Received(piece.name, piece.id, version, begin, end, self.tensor)
            )
        if self.filled < self.nbytes:
            self.filled = self.written.reach(self.filled, 1)
            if self.filled < self.nbytes:
                return []
        if self.pending or self.done:
            self.written.forget(self.settled)
        else:
            self.written.clear()
        received, self.early = self.early, []
        return received

    def _settle(self, version: int) -> None:
        self.done.add(version)
        while self.settled + 1 in self.done:
            self.settled += 1
            self.done.remove(self.settled)

    def release(self) -> None:
        self.flat.release()
        self.tensor.release()


class Receiving:
    """Tensors by id. A piece that is refused (BufferError) changes nothing."""

    def __init__(self, limit: int, device: str | tuple[int, int]) -> None:
        self._limit = limit
        # Makes the Tensor that a piece's elements go to.
        self.make: Callable[[Piece], Tensor] = lambda piece: empty(
            piece.shape, piece.dtype, device=device
        )
        self._ids: dict[int, _Incoming] = {}
        # Of each name: the ids in use, and the latest that is complete.
        self._named: dict[str, set[int]] = {}
        self._latest: dict[str, int] = {}
        self._freed = Spans()
        self._held = 0
        self._entries = 0

    def take(self, piece: Piece, payload: memoryview) -> list[Received]:
        """Takes a piece; gives what is complete now."""
        id, version = piece.id, piece.version
        if self._is_freed(id) or id < self._latest.get(piece.name, 0):
            return []
        existing = self._ids.get(id)
        if existing is not None:
            _check_same(existing, piece)
            if existing.is_complete(version):
                return []
            begin, end, _ = existing.pending.get(version, (piece.begin, piece.end, 0))
            if (begin, end) != (piece.begin, piece.end):
                _refuse(piece, f"version {version} writes {begin} to {end}")
        settled = 0 if existing is None else existing.settled
        if version > settled + MOST_VERSIONS or self._entries >= _MOST_ENTRIES:
            _refuse(piece, "too many writes of it are incomplete")
        incoming = self._make(piece) if existing is None else existing
        try:
            incoming.write(piece, payload)
        except BaseException:
            if existing is None:
                incoming.release()
            raise
        if existing is None:
            self._named.setdefault(piece.name, set()).add(id)
            self._ids[id] = incoming
            self._held += incoming.nbytes
        self._entries -= incoming.entries
        received = incoming.complete(piece)
        self._entries += incoming.entries
        if received:
            self._replace(piece.name, id)
        return received

    def free(self, id: int) -> str | None:
        """Forgets a tensor for ever; its name if there was one."""
        is_gap = not any(map(self._is_freed, (id - 1, id, id + 1)))
        if is_gap and len(self._freed) >= _MOST_GAPS:
            raise BufferError("too many tensors are freed out of order")
        incoming = self._ids.get(id)
        self._drop(id)
        return None if incoming is None else incoming.name

    def forget(self, name: str) -> None:
        """Releases what has arrived under a name, whose memory is no longer given: its
        next piece is that of another tensor."""
        for id, incoming in [*self._ids.items()]:
            if incoming.name == name:
                self._remove(id)

    def clear(self) -> None:
        ids, self._ids = self._ids, {}
        self._named, self._latest = {}, {}
        self._held = self._entries = 0
        self._freed = Spans()
        for incoming in ids.values():
            incoming.release()

    def _is_freed(self, id: int) -> bool:
        return self._freed.reach(id, 1) > id

    def _replace(self, name: str, id: int) -> None:
        """A tensor that is complete takes the place of earlier ones of its name."""
        if self._latest.get(name) == id:
            return
        self._latest[name] = id
        for earlier in [each for each in self._named.get(name, ()) if each < id]:
            self._drop(earlier)

    def _drop(self, id: int) -> None:
        self._freed.mark(id, id + 1, 1)
        self._remove(id)

    def _remove(self, id: int) -> None:
        incoming = self._ids.pop(id, None)
        if incoming is None:
            return
        self._held -= incoming.nbytes
        self._entries -= incoming.entries
        name = incoming.name
        named = self._named.get(name, set())
        named.discard(id)
        if not named:
            self._named.pop(name, None)
        if self._latest.get(name) == id:
            del self._latest[name]
        incoming.release()

    def _make(self, piece: Piece) -> _Incoming:
        nbytes = nbytes_of(piece.dtype, piece.shape)
        left = self._limit - self._held
        if nbytes > left:
            _refuse(
                piece,
                f"it takes {nbytes} bytes, and {left} of the limit of {self._limit} are "
                "left: the receiver's option limit changes it",
            )
        if len(self._ids) >= _MOST_TENSORS or len(self._freed) >= _MOST_GAPS:
            _refuse(piece, f"there are {_MOST_TENSORS} already")
        return _Incoming(piece, nbytes, self.make(piece))


def _check_same(existing: _Incoming, piece: Piece) -> None:
    if existing.identity != (piece.name, piece.dtype, piece.shape):
        name, dtype, shape = existing.identity
        is_of = f"{name!r:.200}, {dtype}{list(shape)}"
        _refuse(piece, f"id {piece.id} is of {is_of}, for ever")


def _refuse(piece: Piece, why: str) -> NoReturn:
    raise BufferError(
        f"bytes {piece.begin} to {piece.end} of {piece.name!r:.200}, "
        f"{piece.dtype}{list(piece.shape)} were refused: {why}"
    )
