"""The receiving half of an endpoint: tensors that the other side writes."""

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from dlpack_web import Tensor, empty
from dlpack_web.internal import memory_of

from .frame import Piece, nbytes_of

# Tensors that a peer may make us keep, numbers of tensors that it may skip, and pieces that
# may come before their turn.
_MOST_TENSORS, _MOST_GAPS, _MOST_EARLY = 8192, 16384, 1024


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
    """A tensor, whose writes are done in order."""

    def __init__(self, piece: Piece, nbytes: int, tensor: Tensor) -> None:
        self.identity = (piece.name, piece.dtype, piece.shape)
        self.nbytes = nbytes
        self.tensor = tensor
        self.flat = tensor.reshape(tensor.size)
        # The write in progress: its version, its bytes if they are known, and up to where
        # they have come; -1: none has.
        self.version = 1
        self.range: tuple[int, int] | None = (0, nbytes)
        self.at = -1

    @property
    def name(self) -> str:
        return self.identity[0]

    def check(self, piece: Piece) -> None:
        """BufferError for a piece of another tensor, or of another write with its version."""
        if self.identity != (piece.name, piece.dtype, piece.shape):
            name, dtype, shape = self.identity
            is_of = f"{name!r:.200}, {dtype}{list(shape)}"
            _refuse(piece, f"id {piece.id} is of {is_of}, for ever")
        if piece.version == self.version and self.range is not None:
            begin, end = self.range
            if (begin, end) != (piece.begin, piece.end):
                _refuse(piece, f"version {piece.version} writes {begin} to {end}")

    def is_repeat(self, piece: Piece) -> bool:
        if piece.version == self.version:
            return piece.last <= self.at
        return piece.version < self.version

    def is_due(self, piece: Piece) -> bool:
        """Whether all that was sent before it has come."""
        start = max(self.at, piece.begin)
        return (piece.version, piece.first) <= (self.version, start)

    def write(self, piece: Piece, payload: memoryview) -> None:
        if self.flat.device.is_host:
            memory_of(self.flat)[piece.first : piece.last] = payload
            return
        step = self.flat.itemsize
        part = self.flat[piece.first // step : piece.last // step]
        with part, empty(part.shape, part.dtype) as landing:
            memory_of(landing)[:] = payload
            part.write(landing)

    def enter(self, piece: Piece) -> list[Received]:
        """The write that is complete with a piece, if one is."""
        version, begin, end = piece.version, piece.begin, piece.end
        # One statement each: an interrupt comes before all of it, or after.
        if piece.last < end:
            self.range, self.at = (begin, end), piece.last
            return []
        self.version, self.range, self.at = version + 1, None, -1
        return [Received(piece.name, piece.id, version, begin, end, self.tensor)]

    def release(self) -> None:
        self.flat.release()
        self.tensor.release()


class Receiving:
    """Tensors by id. A piece that is refused (BufferError) changes nothing. window: bytes
    that the other side may send before they are acknowledged."""

    def __init__(self, limit: int, window: int, device: str | tuple[int, int]) -> None:
        self._limit, self._window = limit, window
        # Makes the Tensor that a piece's elements go to.
        self.make: Callable[[Piece], Tensor] = lambda piece: empty(
            piece.shape, piece.dtype, device=device
        )
        self._ids: dict[int, _Incoming] = {}
        self.clear()

    def clear(self) -> None:
        ids, self._ids = self._ids, {}
        # Of each name: the ids in use, and the latest that is complete.
        self._named: dict[str, set[int]] = {}
        self._latest: dict[str, int] = {}
        # The highest id, and those below it that have not come. The rest was freed.
        self._last = -1
        self._skipped: set[int] = set()
        # What came before its turn, by id, version and first byte.
        self._early: dict[tuple[int, int, int], tuple[Piece, memoryview]] = {}
        self._held = 0
        for incoming in ids.values():
            incoming.release()

    def take(self, piece: Piece, payload: memoryview) -> list[Received] | None:
        """Takes a piece; gives the write that is complete with it. None: it is kept until
        those before it have come."""
        id, existing = piece.id, self._ids.get(piece.id)
        is_freed = existing is None and id <= self._last and id not in self._skipped
        if is_freed or id < self._latest.get(piece.name, 0):
            return []
        incoming = existing or self._make(piece)
        try:
            incoming.check(piece)
            if incoming.is_repeat(piece):
                return []
            is_due = incoming.is_due(piece)
            (incoming.write if is_due else self._keep)(piece, payload)
        except BaseException:
            if existing is None:
                incoming.release()
            raise
        if existing is None:
            self._named.setdefault(piece.name, set()).add(id)
            self._ids[id] = incoming
            self._held += incoming.nbytes
            self._count(id)
        if not is_due:
            return None
        received = incoming.enter(piece)
        if received:
            self._replace(piece.name, id)
        return received

    def following(self, id: int) -> tuple[Piece, memoryview] | None:
        """A piece of a tensor that was kept, and whose turn has come; it is taken next."""
        incoming = self._ids.get(id)
        for key, (piece, _) in self._early.items():
            if incoming is not None and piece.id == id and incoming.is_due(piece):
                return self._early.pop(key)
        return None

    def free(self, id: int) -> str | None:
        """Forgets a tensor for ever; its name if there was one."""
        self._check_number(id)
        incoming = self._ids.get(id)
        self._drop(id)
        return None if incoming is None else incoming.name

    def forget(self, name: str) -> None:
        """Releases what has arrived under a name, whose memory is no longer given: its
        next piece is that of another tensor."""
        for id, incoming in [*self._ids.items()]:
            if incoming.name == name:
                self._skipped.add(id)
                self._remove(id)

    def _check_number(self, id: int) -> None:
        if len(self._skipped) + id - self._last > _MOST_GAPS + 1:
            raise BufferError(f"too many tensors before number {id} have not come")

    def _count(self, id: int) -> None:
        """An id has come; those below it may come later."""
        self._skipped.update(range(self._last + 1, id))
        self._last = max(self._last, id)
        self._skipped.discard(id)

    def _keep(self, piece: Piece, payload: memoryview) -> None:
        key = piece.id, piece.version, piece.first
        kept = sum(len(elements) for _, elements in self._early.values())
        if len(self._early) >= _MOST_EARLY or kept + len(payload) > self._window:
            _refuse(piece, "too much that was sent before it has not come")
        self._early[key] = piece, memoryview(bytes(payload))

    def _replace(self, name: str, id: int) -> None:
        """A tensor that is complete takes the place of earlier ones of its name."""
        if self._latest.get(name) == id:
            return
        self._latest[name] = id
        for earlier in [each for each in self._named.get(name, ()) if each < id]:
            self._drop(earlier)

    def _drop(self, id: int) -> None:
        self._count(id)
        self._remove(id)

    def _remove(self, id: int) -> None:
        incoming = self._ids.pop(id, None)
        if incoming is None:
            return
        self._held -= incoming.nbytes
        for key in [each for each in self._early if each[0] == id]:
            self._early.pop(key, None)
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
        if len(self._ids) >= _MOST_TENSORS:
            _refuse(piece, f"there are {_MOST_TENSORS} already")
        self._check_number(piece.id)
        return _Incoming(piece, nbytes, self.make(piece))


def _refuse(piece: Piece, why: str) -> NoReturn:
    raise BufferError(
        f"bytes {piece.begin} to {piece.end} of {piece.name!r:.200}, "
        f"{piece.dtype}{list(piece.shape)} were refused: {why}"
    )
