"""Elements to and from a page, by the wire: the part of a link (link.py) that has their
memory."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dlpack_web import Tensor, from_dlpack

from .._wire.endpoint import Wire
from .._wire.frame import Piece
from .._wire.receiving import Received
from .._wire.sending import RemoteTensor
from .device import PageDevice
from .locked import locked
from .operations import Operations
from .replies import Reply, end


@dataclass(eq=False)
class _Landing:
    """Memory for elements that were asked for. id: of the wire's tensor with them."""

    target: Tensor
    reply: Reply
    id: int | None = None


@dataclass(eq=False)
class _Way:
    """Elements on their way. sent: done when they have arrived, or were given up."""

    op: dict[str, Any]
    sent: Future[None]
    remote: RemoteTensor | None = None


class Transfers(Operations):
    """put: sends a message with buffers. sizes: of pieces and of the window, in bytes, and
    the seconds after which the wire sends again."""

    def __init__(
        self,
        put: Callable[..., None],
        device: PageDevice,
        sizes: tuple[int, int, float],
    ) -> None:
        super().__init__(put, device)
        piece, window, timeout = sizes
        self._wire = Wire(
            lambda header, payload: put({"frame": True}, header, payload),
            on_tensor=self._landed,
            limit=2**63,  # what arrives is what was asked for
            piece=piece,
            window=window,
            timeout=timeout,
        )
        self._wire._receiving.make = self._landing
        self._landings: dict[str, _Landing] = {}
        self._ways: dict[str, _Way] = {}

    @locked
    def send(
        self,
        name: str,
        source: Tensor,
        op: dict[str, Any],
        unmade: list[Any],
        sent: Future[None],
    ) -> None:
        """Elements, by the wire, under a name; `op` uses them, as `make` does. After an
        exception, `drop` what may be on its way."""
        self._begin()
        way = self._ways[name] = _Way(op, sent)
        self.orders.add(op, unmade, 1)
        self._gone += unmade
        self.orders.flush()
        way.remote = self._wire.send(name, source)
        way.remote.ready.add_done_callback(lambda _: self._arrived(name))

    @locked
    def drop(self, name: str) -> None:
        """Gives up what is on its way under a name: nothing reads its memory."""
        if name not in self._ways or self.device.lost is not None:
            return
        for remote in [*self._wire._sending._remotes.values()]:
            if remote.name == name:
                with suppress(Exception):  # the channel's: it is sent again
                    remote.free()
        self._give_up(name, BufferError(f"{name!r} was freed"))

    @locked
    def read(self, reply: Reply, landings: dict[str, Tensor], **fields: Any) -> None:
        """Asks for elements by names, each with the memory for them; `end` that. The reply
        is done as soon as all are there."""
        self._begin()
        reply.missing |= landings.keys()
        self._replies.add(reply)
        for name, target in landings.items():
            self._landings[name] = _Landing(target, reply)
        names = [*landings]
        self._do({"op": "read", "reply": reply.number, "names": names, **fields})

    @locked
    def end(self, reply: Reply, names: Iterable[str]) -> None:
        """Nobody waits for that answer any more. What still comes under these names is
        refused: nothing writes to its memory, or keeps it."""
        self._replies.forget(reply)
        for name in names:
            if self._landings.pop(name, None) is not None:
                self._wire._receiving.forget(name)
                self._wire.tensors.pop(name, None)

    def _arrived(self, name: str) -> None:
        """The page has all elements, and a hold of its own on them; or they were given up.
        Then the caller may have changed what is still on its way: a tensor to which it was
        written has an error instead, even if the page has done that."""
        way = self._ways.get(name)
        if way is None or way.remote is None:
            return
        error = way.remote.ready.exception()
        if error is not None:
            self._give_up(name, error)
            return
        with suppress(Exception):  # the channel's: it is sent again
            way.remote.free()
        self._ways.pop(name, None)
        end(way.sent, None)

    def _give_up(self, name: str, error: BaseException) -> None:
        way = self._ways.get(name)
        if way is None:
            return
        if self.device.lost is None:
            cancel = {"op": "cancel", "name": name, "why": str(error)[:1000]}
            to = {"to": way.op["to"]["id"]} if "to" in way.op else {}
            self.orders.add(cancel | to, [], 0)
            with suppress(Exception):  # the channel's: the next operation tries again
                self.orders.flush()
        self._ways.pop(name, None)
        end(way.sent, error)

    def _landing(self, piece: Piece) -> Any:
        """The memory for a tensor of the page."""
        landing = self._landings.get(piece.name)
        if landing is None:
            raise BufferError(f"{piece.name[:50]!r} was not asked for")
        if landing.id not in (None, piece.id):
            raise BufferError(f"{piece.name[:50]!r} comes under two ids")
        target = landing.target
        if piece.dtype != "uint8" or piece.shape != target.shape:
            raise BufferError(
                f"{piece.dtype}{list(piece.shape)}, where uint8{list(target.shape)} was "
                "asked for"
            )
        landing.id = piece.id
        return from_dlpack(target)

    def _landed(self, received: Received) -> None:
        """A write of the page has arrived: of all elements, before the page knows that."""
        name = received.name
        landing = self._landings.get(name)
        if landing is None or received.id != landing.id:
            return
        if received.begin > 0 or received.end < landing.target.shape[0]:
            return
        landing.reply.missing.discard(name)
        if not landing.reply.missing:
            end(landing.reply, None)
            self._replies.forget(landing.reply)
        self._wire.tensors.pop(name, None)
        self._wire._receiving.free(received.id)
        self._landings.pop(name, None)

    def _mend(self) -> None:
        self._wire._sending.mend()
        for name, way in [*self._ways.items()]:
            if way.remote is not None and way.remote.ready.done():
                self._arrived(name)
        for incoming in [*self._wire._receiving._ids.values()]:
            landing = self._landings.get(incoming.name)
            if landing is not None and incoming.settled:
                why = "an interrupt came as its elements arrived: read it again"
                end(landing.reply, BufferError(why))
