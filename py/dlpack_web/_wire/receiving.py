"""The receiving half of an endpoint: tensors that the other side writes."""

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from .. import _core
from .._files.headers import nbytes_of
from .._tensor.making import empty
from .._tensor.tensor import Tensor
from .frame import Piece
from .spans import Spans

# Versions of a tensor that may be incomplete at once: senders wait, receivers refuse
# more.
MOST_VERSIONS = 1024
# Tensors that a peer may make us keep, and entries about what is incomplete.
_MOST_TENSORS, _MOST_ENTRIES = 8192, 65536


class Received(NamedTuple):
    """A tensor after a write to it has arrived completely. begin, end: the bytes that
    this version wrote. tensor: the endpoint's, valid until the other side frees it, or
    `close()`."""

    name: str
    id: int
    version: int
    begin: int
    end: int
    tensor: Tensor


class _Incoming:
    def __init__(self, piece: Piece, nbytes: int, tensor: Tensor) -> None:
        self.facts = (piece.name, piece.dtype, piece.shape)
        self.nbytes = nbytes
        self.tensor = tensor
        self.flat = tensor.reshape(tensor.size)
        self.written = Spans()  # by byte
        self.done = Spans()  # by version: 1 if it is complete
        self.settled = 0  # all versions up to this one are complete
        self.pending: dict[int, tuple[int, int]] = {}  # what incomplete versions write

    @property
    def entries(self) -> int:
        return len(self.written) + len(self.done) + len(self.pending)

    def write(self, piece: Piece, payload: memoryview) -> None:
        step = piece.dtype.itemsize
        lower = self.written.below(piece.first, piece.last, piece.version)
        for begin, end in lower:
            source = payload[begin - piece.first : end - piece.first]
            with self.flat[begin // step : end // step] as part:
                _write(part, source)

    def complete(self, piece: Piece) -> Received | None:
        """Enters the piece; the tensor, if its version is complete now."""
        version = piece.version
        self.written.mark(piece.first, piece.last, version)
        self.pending[version] = (piece.begin, piece.end)
        if self.written.below(piece.begin, piece.end, version):
            return None
        del self.pending[version]
        self.done.mark(version, version + 1, 1)
        self.settled = max(self.done.end_at(1) - 1, 0)
        self.written.forget(self.settled)
        return Received(
            piece.name, piece.id, version, piece.begin, piece.end, self.tensor
        )

    def release(self) -> None:
        self.flat.release()
        self.tensor.release()


def _write(part: Tensor, source: memoryview) -> None:
    """The bytes, as elements of the Tensor's dtype."""
    if part.device.is_host:
        memoryview(_core._raw(part)[0])[:] = source
        return
    with empty(part.shape, part.dtype) as landing:
        memoryview(_core._raw(landing)[0])[:] = source
        part.write(landing)


class Receiving:
    """Tensors by id. A piece that cannot be accepted raises BufferError, and changes
    nothing."""

    def __init__(self, limit: int, device: str | tuple[int, int]) -> None:
        self._limit = limit
        # Makes the Tensor that a piece's elements go to.
        self.make: Callable[[Piece], Tensor] = lambda piece: empty(
            piece.shape, piece.dtype, device=device
        )
        self._ids: dict[int, _Incoming] = {}
        self._freed = Spans()
        self._held = 0
        self._entries = 0

    def take(self, piece: Piece, payload: memoryview) -> Received | None:
        """Takes a piece; gives the tensor if its version is complete now."""
        id, version = piece.id, piece.version
        if self._freed.end_at(id) > id:
            return None
        known = self._ids.get(id)
        if known is not None:
            _check_same(known, piece)
            if version <= known.settled or known.done.end_at(version) > version:
                return None
            begin, end = known.pending.get(version, (piece.begin, piece.end))
            if (begin, end) != (piece.begin, piece.end):
                _refuse(piece, f"version {version} writes {begin} to {end}")
        settled = 0 if known is None else known.settled
        if version > settled + MOST_VERSIONS or self._entries > _MOST_ENTRIES:
            _refuse(piece, "too many writes of it are incomplete")
        incoming = self._make(piece) if known is None else known
        try:
            incoming.write(piece, payload)
        except BaseException:
            if known is None:
                incoming.release()
            raise
        if known is None:
            self._ids[id] = incoming
            self._held += incoming.nbytes
        self._entries -= incoming.entries
        received = incoming.complete(piece)
        self._entries += incoming.entries
        return received

    def free(self, id: int) -> str | None:
        """Forgets a tensor for ever; its name if there was one."""
        if len(self._freed) > _MOST_TENSORS:
            raise BufferError("too many tensors are freed out of order")
        self._freed.mark(id, id + 1, 1)
        incoming = self._ids.pop(id, None)
        if incoming is None:
            return None
        self._held -= incoming.nbytes
        self._entries -= incoming.entries
        incoming.release()
        return incoming.facts[0]

    def forget(self, name: str) -> None:
        """Releases what has arrived under a name, whose memory is no longer given: its
        next piece is that of another tensor."""
        for id, incoming in [*self._ids.items()]:
            if incoming.facts[0] == name:
                incoming.release()
                self._held -= incoming.nbytes
                self._entries -= incoming.entries
                del self._ids[id]

    def clear(self) -> None:
        """Releases all."""
        ids, self._ids = self._ids, {}
        self._held = self._entries = 0
        self._freed = Spans()
        for incoming in ids.values():
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
        return _Incoming(piece, nbytes, self.make(piece))


def _check_same(known: _Incoming, piece: Piece) -> None:
    if known.facts != (piece.name, piece.dtype, piece.shape):
        name, dtype, shape = known.facts
        _refuse(piece, f"id {piece.id} is of {name!r}, {dtype}{list(shape)}, for ever")


def _refuse(piece: Piece, why: str) -> NoReturn:
    raise BufferError(
        f"bytes {piece.begin} to {piece.end} of {piece.name!r}, "
        f"{piece.dtype}{list(piece.shape)} were refused: {why}"
    )
