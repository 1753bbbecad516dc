"""One end of the wire: bytes in, bytes out."""

import os
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from math import inf
from time import monotonic
from typing import Any

from dlpack_web import Tensor

from .frame import (
    LEAST_PIECE,
    MOST_PIECE,
    Ack,
    Body,
    Frame,
    Free,
    Hello,
    Piece,
    Refuse,
    decode,
    encode,
)
from .receiving import Received, Receiving
from .sending import RemoteTensor, Sending, more_time

_NOTHING = memoryview(b"")
# Sessions that ended, of which late frames may arrive.
_MOST_PAST = 16


class Wire:
    """One end of a channel that carries tensors in pieces, both ways. It has no sockets and no
    timers: `send` gets frames, and `receive` takes those of the other side. Use it from one
    thread at a time.

    Parameters
    ----------
    send : callable
        `send(header, payload)` sends a frame, the header and the elements that follow it
        (empty if none), which are valid during the call only; `joined` makes one message of
        them.
    on_tensor : callable, optional
        Called with a `Received` after each write of the other side that has arrived
        completely.
    on_free : callable, optional
        Called with the name of a tensor that the other side freed.
    on_session : callable, optional
        Called when another session begins there, and what it had sent is gone.
    on_refuse : callable, optional
        Called with the BufferError of a piece of the other side that was refused.
    device : str or Device
        Where tensors arrive.
    limit : int
        Bytes of the tensors that the other side may make us hold.
    piece : int
        Bytes of a piece, 64 KiB to 4 MiB.
    window : int, optional
        Bytes that the other side may send before we acknowledge them; default: two pieces.
    timeout : float, optional
        Seconds after which `tick` sends again what was not acknowledged, doubled each time;
        default: never.
    now : callable
        A clock, in seconds.

    Raises
    ------
    ValueError
        Sizes that cannot be.

    Examples
    --------
    >>> from dlpack_web_page.wire import Wire, joined
    >>> to_b, to_a = [], []
    >>> a = Wire(lambda header, payload: to_b.append(joined(header, payload)))
    >>> b = Wire(lambda header, payload: to_a.append(joined(header, payload)))
    >>> a.connect()
    >>> points = a.send("points", np.arange(3.0))
    >>> while to_a or to_b:
    ...     for wire, frames in (a, to_a), (b, to_b):
    ...         if frames:
    ...             wire.receive(frames.pop(0))
    >>> points.ready.done(), b.tensors["points"].numpy()
    (True, array([0., 1., 2.]))
    """

    def __init__(
        self,
        send: Callable[[bytes, memoryview], object],
        *,
        on_tensor: Callable[[Received], object] | None = None,
        on_free: Callable[[str], object] | None = None,
        on_session: Callable[[], object] | None = None,
        on_refuse: Callable[[BufferError], object] | None = None,
        device: str | tuple[int, int] = "cpu",
        limit: int = 2**30,
        piece: int = 1 << 20,
        window: int | None = None,
        timeout: float | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        if not LEAST_PIECE <= piece <= MOST_PIECE:
            raise ValueError(
                f"piece is {piece}, and not from {LEAST_PIECE} to {MOST_PIECE} bytes"
            )
        window = 2 * piece if window is None else window
        if not (0 <= window < 2**53 and limit >= 0):
            raise ValueError("window and limit are numbers of bytes, 0 or more")
        self._out = send
        self._on_tensor, self._on_free = on_tensor, on_free
        self._on_session, self._on_refuse = on_session, on_refuse
        self._timeout, self._now = timeout, now
        self._own = os.urandom(8).hex()
        self._hello = Hello(window, piece)
        self._sending = Sending(piece, self._post, now)
        self._receiving = Receiving(limit, device)
        self._past: deque[str] = deque(maxlen=_MOST_PAST)
        self._peer = ""  # the other side's session
        self._connected = False
        self._closed = False
        self._hellos, self._hello_at = 0, -inf  # without an answer; not before
        # The other side's tensors that have arrived completely, by name.
        self.tensors: dict[str, Tensor] = {}

    def connect(self) -> None:
        """Says hello: at the start, and after the channel was opened again."""
        self._check()
        self._connected = False
        self._sending.disconnect()
        self._hellos, self._hello_at = 0, -inf
        self._greet()

    def send(self, name: str, tensor: object, /) -> RemoteTensor:
        """Sends a tensor, one copy of a piece at a time.

        Parameters
        ----------
        name : str
            The new tensor takes the place of an earlier one of that name, which is freed then.
        tensor : Tensor or array
            Its memory must not change until `ready` of the result is done.

        Returns
        -------
        RemoteTensor
            The other side's tensor, to write to it again.

        Raises
        ------
        BufferError
            A dtype that safetensors lacks.
        """
        self._check()
        return self._sending.open(name, tensor)

    def receive(self, frame: Any, payload: Any = None, /) -> None:
        """Takes a frame of the other side.

        Parameters
        ----------
        frame : bytes or buffer
            Header and elements, or the header alone.
        payload : bytes or buffer, optional
            The elements, if they come beside the header.

        Raises
        ------
        BufferError
            A frame that is damaged, or of another version; then nothing changes.
        """
        self._check()
        given = decode(frame, payload)
        if given.from_ == self._own or given.from_ in self._past:
            return
        if isinstance(given.body, Hello):
            self._meet(given, given.body)
        elif given.to != self._own:
            return
        elif not self._connected:
            self._greet()  # its hello was lost
        elif given.from_ == self._peer:
            self._dispatch(given)

    def tick(self) -> None:
        """Sends again what was not acknowledged in time, if there is a `timeout`: call
        it now and then."""
        if self._timeout is None or self._closed:
            return
        if self._connected:
            self._sending.resend(self._now() - self._timeout)
        else:
            self._greet()

    def close(self) -> None:
        """Ends all: writes in progress fail, and Tensors of the other side are
        released."""
        self._closed = True
        self._sending.reset(BufferError("the wire was closed"))
        self._forget()

    def _check(self) -> None:
        if self._closed:
            raise BufferError("the wire was closed")

    def _greet(self) -> None:
        """Says hello, unless it is too early to say it again: it is short, and other
        frames wait for the answer."""
        now = self._now()
        if now >= self._hello_at:
            self._hello_at = now + more_time((self._timeout or 0) / 16, self._hellos)
            self._hellos += 1
            self._post(self._hello, to="")

    def _post(
        self, body: Body, payload: memoryview = _NOTHING, to: str | None = None
    ) -> None:
        if not self._closed:
            peer = self._peer if to is None else to
            self._out(encode(body, self._own, peer), payload)

    def _meet(self, frame: Frame, hello: Hello) -> None:
        again = frame.from_ == self._peer and self._connected
        try:
            if frame.from_ != self._peer and self._peer:
                self._restart(frame.from_)
        finally:
            self._join(frame, hello, again)

    def _restart(self, peer: str) -> None:
        """The other side has another session."""
        self._past.append(self._peer)
        self._peer = peer
        self._connected = False
        self._forget()
        why = "the other side has a new session (it was reloaded or restarted): send the tensor again"
        self._sending.reset(BufferError(why))
        if self._on_session is not None:
            self._on_session()

    def _join(self, frame: Frame, hello: Hello, again: bool) -> None:
        if self._closed:
            return
        self._peer = frame.from_
        self._connected = True
        if frame.to != self._own:
            self._post(self._hello)
        if not again or frame.to != self._own:
            self._sending.connect(hello)

    def _dispatch(self, frame: Frame) -> None:
        match frame.body:
            case Ack() as ack:
                self._sending.acknowledge(ack)
            case Refuse() as refuse:
                self._sending.refused(refuse)
            case Piece() as piece:
                self._take(piece, frame.payload)
            case Free(id, version):
                name = self._receiving.free(id)
                self._post(Ack(id, version, 0, 0))
                if name is not None:
                    if (there := self.tensors.get(name)) is not None and there.released:
                        del self.tensors[name]
                    if self._on_free is not None and name not in self.tensors:
                        self._on_free(name)

    def _take(self, piece: Piece, payload: memoryview) -> None:
        try:
            received = self._receiving.take(piece, payload)
        except (BufferError, MemoryError) as error:
            why = BufferError(
                f"{error}" or f"there is no memory for {piece.name!r:.200}"
            )
            self._post(Refuse(piece.id, piece.version, str(why)[:1000]))
            if self._on_refuse is not None:
                self._on_refuse(why)
            return
        with ExitStack() as news:  # also if that is lost: then the piece comes again
            for each in reversed(received):
                self.tensors[each.name] = each.tensor
                news.callback(self._arrived, each)
            self._post(Ack(piece.id, piece.version, piece.first, piece.last))

    def _arrived(self, received: Received) -> None:
        is_there = self.tensors.get(received.name) is received.tensor
        if is_there and self._on_tensor is not None:
            self._on_tensor(received)

    def _forget(self) -> None:
        self.tensors.clear()
        self._receiving.clear()


def joined(header: bytes, payload: memoryview) -> bytes:
    """One message of a frame.

    Parameters
    ----------
    header, payload
        What `send` got.
    """
    return b"".join((header, payload))
