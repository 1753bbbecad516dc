"""One session with one page: its messages, in both directions.

A message is a dict that JSON can carry, and buffers. All of them have the version of these
messages and the sessions of both ends; then there is one of:

- n, got, do: a numbered message (ordered.py); got alone acknowledges.
- frame: the buffers are a frame of the wire.
- ping, pong: whether the other side is there.
- lost: the page's device was lost; bye: the page is gone; closed: the widget was closed;
  ended: the kernel has given up the page's session, and the page begins another one.
- apart: the page cannot get messages directly.
- leaving: the page may be closed or reloaded now. Browsers drop what a page sends at its
  end, so bye may never arrive.

A page that reaches the kernel's machine gets them by a WebSocket (direct.py), and answers
there. Either channel may lose messages when it ends, and one may overtake the other.

Messages may arrive on any thread. The lock is never held while Python waits, and what
Python's collector does only enters a queue (`gone`), which a thread empties.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from .. import _core
from .._backends.calls import warn_at
from .._files.headers import malformed
from .._tensor.tensor import Tensor
from .._wire.endpoint import Wire
from .._wire.frame import Piece
from .._wire.receiving import Received
from .._wire.sending import RemoteTensor
from .ordered import Ordered
from .record import PageGPU, PageRecord
from .replies import Replies, Sites, pending

#: The version of these messages, for pages of another version of this library.
VERSION = "1"
_PIECE, _WINDOW = 4 << 20, 16 << 20
_PING_S = 2.0  # how long a page may be silent while Python waits for it
_LEAVING_S = 3.0  # how long one that said it may leave has for its answer to a ping
_RESEND_S = 30.0
_GONE = "its page was closed or reloaded"
_LATER_S = 0.02  # in which what Python collects is gathered


def _no_one(content: dict[str, Any], buffers: Sequence[Any]) -> None:
    """Sends nothing."""


type Post = Callable[[dict[str, Any], Sequence[Any]], object]


class _Landing(NamedTuple):
    """The memory for elements that were asked for; missing: the names of the same
    question whose elements are not there yet."""

    target: _core.Tensor
    number: int
    missing: set[str]


class Link:
    """post: sends a message with buffers to all pages. patience: seconds that a page may
    take to answer a ping."""

    def __init__(
        self,
        post: Post,
        own: str,
        peer: str,
        device_id: int,
        gpu: PageGPU,
        patience: float,
    ) -> None:
        self._post, self._own, self.peer = post, own, peer
        self._patience = patience
        self.record = PageRecord(device_id, gpu)
        self.sites = Sites()
        self._lock = threading.Lock()
        self._replies = Replies()
        self.orders = Ordered(self._put)
        self._wire = Wire(
            lambda header, payload: self._put({"frame": True}, header, payload),
            on_tensor=self._landed,
            piece=_PIECE,
            window=_WINDOW,
            timeout=_RESEND_S,
        )
        self._wire._receiving.make = self._landing
        self._landings: dict[str, _Landing] = {}
        #: What the page's script knows by name (tensors.py); own holds.
        self.given: dict[str, Tensor] = {}
        #: The threads on which messages arrive: by the notebook, and directly.
        self._thread, self._direct_thread = threading.get_ident(), 0
        self._direct: Post | None = None
        #: What the page needs to send messages directly, if it may.
        self.offer: dict[str, str] | None = None
        #: Done as soon as that is known.
        self.tried: Future[None] = pending()
        self._pinged: float | None = None
        self._leaving = False
        self._heard = self._sent_again = time.monotonic()
        #: What Python has collected: (kind, number). None: look whether there is work.
        self.gone: SimpleQueue[tuple[str, int] | None] = SimpleQueue()
        threading.Thread(target=self._tidy, name="dlpack_web page", daemon=True).start()

    # --- messages to the page ---------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Sends what follows in one piece. DeviceLostError if the page is gone."""
        with self._lock:
            self.record.check_alive()
            self._let_go()
            yield

    def op(self, name: str, **facts: Any) -> None:
        """An operation on the page's tensors, after all earlier ones."""
        with self.turn():
            self.orders.send({"op": name, **facts})

    def ask(self, name: str, **facts: Any) -> tuple[int, Future[Any]]:
        """An operation that the page answers."""
        with self.turn():
            number, future = self._replies.new()
            self.orders.send({"op": name, "reply": number, **facts})
        return number, future

    async def answer(self, name: str, **facts: Any) -> Any:
        """The answer to an operation."""
        number, future = self.ask(name, **facts)
        try:
            return await self.wait_for(future)
        finally:
            self.forget(number)

    def forget(self, number: int) -> None:
        """Nobody waits for that answer any more."""
        with self._lock:
            self._replies.forget(number)

    def send(self, name: str, source: _core.Tensor, op: dict[str, Any]) -> RemoteTensor:
        """Elements, by the wire, under a name; `op` uses them."""
        with self.turn():
            remote = self._wire.send(name, source)
            self.orders.send(op)
            remote.ready.add_done_callback(lambda sent: self._arrived(remote, sent, op))
        return remote

    def give(self, key: str, tensor: Tensor | None, what: Any) -> None:
        """Shows a tensor to the page's script, or none. The hold is the link's from now
        on; what: the view, as the page makes it."""
        with self.turn():
            site = self.sites.here()
            self.orders.send({"op": "give", "key": key, "what": what, "site": site})
            before = self.given.pop(key, None)
            if tensor is not None:
                self.given[key] = tensor
        if before is not None:
            before.release()

    def drop(self, remote: RemoteTensor) -> None:
        """Gives up what is on its way."""
        with self._lock:
            if self.record.lost is None:
                remote.free()

    def read(
        self, landings: dict[str, _core.Tensor], **facts: Any
    ) -> tuple[int, Future[Any]]:
        """Asks for elements by names, each with the memory for them, which belongs to the
        link from now on. The future is done as soon as all are there."""
        missing = set(landings)
        with self._lock:
            number, future = self._replies.new()
            for name, target in landings.items():
                self._landings[name] = _Landing(target, number, missing)
        try:
            with self.turn():
                names = [*landings]
                self.orders.send(
                    {"op": "read", "reply": number, "names": names, **facts}
                )
        except BaseException:
            self.forget(number)
            self.unread(landings)
            raise
        return number, future

    def unread(self, names: Iterable[str]) -> None:
        """What still comes under these names is refused."""
        with self._lock:
            for name in names:
                self._landings.pop(name, None)

    def start(self) -> None:
        """The first message, which the page waits for."""
        with self._lock:
            self._put({"welcome": self.record.id, "direct": self.offer})
            self._wire.connect()

    @property
    def is_direct(self) -> bool:
        return self._direct is not None

    def attach(self, send: Post) -> None:
        """From now on messages go this way. Its own arrive on this thread."""
        with self._lock:
            if self.record.lost is None:
                self._direct, self._direct_thread = send, threading.get_ident()
                self._found_out()

    def detach(self, send: Post) -> None:
        """That way has ended, with what was on it: because the page was closed, or for
        another reason."""
        with self._lock:
            if self._direct is not send:
                return
            self._direct = None
            if self.record.lost is None:
                self._leaving, self._pinged = True, time.monotonic()
                self._put({"ping": True})
                self._wire.connect()
                self.orders.resend()

    def _found_out(self) -> None:
        if not self.tried.done():
            self.tried.set_result(None)

    def ping(self) -> None:
        with self._lock:
            self._put({"ping": True})

    def _put(self, content: dict[str, Any], *buffers: Any) -> None:
        head = {"dlpack_web": VERSION, "from": self._own, "to": self.peer}
        # They may be sent after this call: the memory does not change until the page has
        # all elements, or they were given up (backend._Sending, _arrived).
        post = self._direct or self._post
        post({**head, **content}, buffers)

    def _arrived(
        self, remote: RemoteTensor, sent: Future[None], op: dict[str, Any]
    ) -> None:
        """The page has all elements, and a hold of its own on them; or they were given up.
        Then the caller may have changed what is still on its way: a tensor to which it was
        written has an error instead, even if the page has done that."""
        error = sent.exception()
        if error is not None and self.record.lost is None:
            cancel = {"op": "cancel", "name": remote.name, "why": str(error)[:1000]}
            to = {"to": op["to"]["id"]} if "to" in op else {}
            self.orders.send(cancel | to)
        remote.free()

    # --- messages from the page -------------------------------------------------------

    def receive(self, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Takes a message of this page. BufferError: it is damaged; nothing changes."""
        with self._lock:
            if self.record.lost is not None:
                return
            here = threading.get_ident()
            if here != self._direct_thread:
                self._thread = here
            self._heard, self._pinged = time.monotonic(), None
            if "lost" in content:
                self._lose(f"in the page: {content['lost']!s:.200}")
            elif "bye" in content:
                self._lose(_GONE)
            elif "leaving" in content:
                self._leaving = True
            elif "pong" in content:
                self._leaving = False
            elif "apart" in content:
                self._found_out()
            elif "frame" in content:
                if not 1 <= len(buffers) <= 2:
                    raise BufferError(f"a frame in {len(buffers)} buffers")
                self._wire.receive(*buffers)
            elif "got" in content:
                for body in self.orders.receive(content):
                    self._take(body)
                self.gone.put(None)

    def lose(self, why: str) -> None:
        """Ends all; tensors of the page then raise DeviceLostError."""
        with self._lock:
            self._lose(why)

    def heard_since(self, moment: float) -> bool:
        return self._heard > moment

    def _take(self, body: Any) -> None:
        if not isinstance(body, dict):
            malformed("the page's message", f"it does {body!r:.50}")
        if "reply" in body:
            self._replies.take(body, self.sites)
        elif "fault" in body:
            place = self.sites.of(body.get("site"))
            warn_at(str(body["fault"])[:10_000], *(place or ("<unknown>", 0)))

    def _landing(self, piece: Piece) -> Any:
        """The memory for a tensor of the page."""
        landing = self._landings.get(piece.name)
        if landing is None:
            raise BufferError(f"{piece.name!r:.50} was not asked for")
        target = landing.target
        if piece.dtype != "uint8" or piece.shape != target.shape:
            raise BufferError(
                f"{piece.dtype}{list(piece.shape)}, where uint8{list(target.shape)} was "
                "asked for"
            )
        return _core.from_dlpack(target)

    def _landed(self, received: Received) -> None:
        """A tensor of the page has all elements, before the page knows that."""
        self._wire.tensors.pop(received.name, None)
        self._wire._receiving.free(received.id)
        landing = self._landings.pop(received.name, None)
        if landing is not None:
            landing.missing.discard(received.name)
            if not landing.missing:
                self._replies.take({"reply": landing.number}, self.sites)

    def _lose(self, why: str) -> None:
        if self.record.lost is not None:
            return
        self.record.lose(why)

        def lost() -> Exception:
            with suppress(BufferError):
                self.record.check_alive()
            return _core.DeviceLostError(f"webgpu:{self.record.id} is lost ({why})")

        self._wire.close()
        self._found_out()
        # Backends of pages stay: they must not keep the widget.
        self._post, self._direct = _no_one, None
        self._replies.fail(lost)
        self._landings.clear()
        given, self.given = self.given, {}
        for tensor in given.values():
            tensor.release()
        self.gone.put(None)

    # --- waiting ----------------------------------------------------------------------

    def can_block(self) -> bool:
        """Whether messages arrive while this thread waits: on another one."""
        used = self._direct_thread if self._direct else self._thread
        return used != threading.get_ident()

    def wait(self, future: Future[Any]) -> Any:
        """The result; only where `can_block()`."""
        while True:
            try:
                return future.result(timeout=0.5)
            except TimeoutError:
                if future.done():
                    return future.result()
                self._look()

    async def wait_for(self, future: Future[Any]) -> Any:
        """The result, while the event loop runs."""
        waiting = asyncio.ensure_future(asyncio.wrap_future(future))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=0.5)
                if not waiting.done():
                    self._look()
            return waiting.result()
        finally:
            waiting.cancel()

    def _look(self) -> None:
        """Whether the page is there, and what was lost on the way. BufferError: it does
        not answer."""
        with self._lock:
            now = time.monotonic()
            if self._pinged is None:
                if now - self._heard > _PING_S:
                    self._pinged = now
                    self._put({"ping": True})
            elif self._leaving and now - self._pinged > _LEAVING_S:
                self._lose(_GONE)
            elif now - self._pinged > self._patience:
                raise BufferError(
                    f"the page has not answered for {self._patience:g} s: is it open, and "
                    "can it send messages to a cell that runs? The work goes on there; "
                    "await again, in another cell"
                )
            self._wire.tick()
            if now - self._sent_again > _RESEND_S:
                self._sent_again = now
                self.orders.resend()

    # --- the end of tensors ------------------------------------------------------------

    def _tidy(self) -> None:
        """A thread: tells the page what Python has collected, and what has arrived."""
        while self.record.lost is None:
            found = self.gone.get()
            time.sleep(_LATER_S)
            with self._lock:
                if self.record.lost is not None:
                    return
                with suppress(Exception):  # the next operation tries again
                    self._let_go(found)
                    self.orders.acknowledge()

    def _let_go(self, *more: tuple[str, int] | None) -> None:
        found = [each for each in more if each is not None]
        while not self.gone.empty():
            each = self.gone.get()
            if each is not None:
                found.append(each)
        if found:
            self.orders.send({"op": "free", "what": found})
