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
Python's collector does only enters a list (Operations.let_go), which a thread empties. An
interrupt may come at any place: what it leaves half done is completed before the next step
(`_mend`).
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from dlpack_web import DeviceLostError, Tensor

from .._wire.frame import malformed
from .device import PageDevice, PageGPU
from .locked import locked
from .replies import Reply, end, pending, warn_at
from .transfers import Transfers

#: The version of these messages, for pages of another version of this library.
VERSION = "1"
_PIECE, _WINDOW = 4 << 20, 16 << 20
_PING_S = 2.0  # how long a page may be silent while Python waits for it
# How long one that said it may leave has for its answer to a ping. What it sends later
# than that shows that it stayed.
_LEAVING_S = 3.0
_SLEPT_S = 10.0  # after a ping without an answer, messages may have been lost
_AWAY_S = 2.0  # longer between two looks, Python was busy and could not hear
_RESEND_S = 30.0  # doubled each time
_MOST_DOUBLED = 10
_GONE = "its page was closed or reloaded"
_NOTHING: Callable[[], object] = lambda: None


type Post = Callable[[dict[str, Any], Sequence[Any]], object]


class Link(Transfers):
    """post: sends a message with buffers to all pages. patience: seconds that a page may
    take to answer a ping."""

    def __init__(
        self,
        post: Post,
        own: str,
        peer: str,
        gpu: PageGPU,
        patience: float,
    ) -> None:
        device = PageDevice(gpu, self)
        super().__init__(self._put, device, (_PIECE, _WINDOW, _RESEND_S))
        self._post, self._own, self.peer = post, own, peer
        self._patience = patience
        #: What the page's script knows by name (tensors.py); own holds.
        self.given: dict[str, Tensor] = {}
        #: The threads on which messages arrive: by the notebook, and directly.
        self._thread, self._direct_thread = threading.get_ident(), 0
        self._direct: Post | None = None
        self._hang_up: Callable[[], object] = _NOTHING
        #: What the page needs to send messages directly, if it may.
        self.offer: dict[str, str] | None = None
        #: Done as soon as that is known.
        self.tried: Future[None] = pending()
        self._pinged: float | None = None
        self._leaving: float | None = None  # when the page said so
        self._heard = self._sent_again = self._looked = time.monotonic()
        self._resends = 0
        self._is_tidied = False

    # --- messages to the page ---------------------------------------------------------

    async def answer(self, name: str, **fields: Any) -> Any:
        reply = Reply()
        try:
            self.ask(reply, {"op": name, **fields})
            return await self.wait_for(reply)
        finally:
            self.end(reply, ())

    @locked
    def give(self, key: str, tensor: Tensor | None, what: Any) -> None:
        """Shows a tensor to the page's script, or none. The hold is the link's from now
        on; what: the view, as the page makes it."""
        site = self.sites.here()
        op = {"op": "give", "key": key, "what": what, "site": site}
        try:
            self._begin()
            self._do(op)
            self._show(key, tensor)
        except BaseException:
            if self.orders.knows(op):
                self._show(key, tensor)
            raise
        finally:
            if tensor is not None and self.given.get(key) is not tensor:
                tensor.release()

    def _show(self, key: str, tensor: Tensor | None) -> None:
        before = self.given.pop(key, None)
        if tensor is not None:
            self.given[key] = tensor
        if before is not None and before is not tensor:
            before.release()

    @locked
    def start(self) -> None:
        """The first message, which the page waits for."""
        if not self._is_tidied:
            thread = threading.Thread(target=self._tidy, daemon=True)
            thread.name = "dlpack_web page"
            thread.start()
            self._is_tidied = True
        self._put({"welcome": self.device.id, "direct": self.offer})
        self._wire.connect()

    @property
    def is_direct(self) -> bool:
        return self._direct is not None

    @locked
    def attach(self, send: Post, hang_up: Callable[[], object] = _NOTHING) -> None:
        """From now on messages go this way. Its own arrive on this thread. hang_up: ends
        it, when the page is gone."""
        if self.device.lost is not None:
            hang_up()
            return
        self._direct, self._direct_thread = send, threading.get_ident()
        self._hang_up = hang_up
        end(self.tried, None)

    @locked
    def detach(self, send: Post) -> None:
        """That way has ended, with all messages on it; the page may be there."""
        if self._direct is not send:
            return
        self._direct, self._hang_up = None, _NOTHING
        if self.device.lost is None:
            self._put({"ping": True})
            self._wire.connect()
            self.orders.resend()

    @locked
    def ping(self) -> None:
        self._put({"ping": True})

    def _put(self, content: dict[str, Any], *buffers: Any) -> None:
        head = {"dlpack_web": VERSION, "from": self._own, "to": self.peer}
        # They may be sent after this call: the memory does not change until the page has
        # all elements, or they were given up (Transfers.drop).
        post = self._direct or self._post
        post({**head, **content}, buffers)

    # --- messages from the page -------------------------------------------------------

    def receive(
        self, content: dict[str, Any], buffers: Sequence[Any], directly: bool
    ) -> None:
        """Takes a message of this page; directly: not by the notebook. BufferError: it is
        damaged; nothing changes."""
        try:
            self._receive(content, buffers, directly)
        except Exception:
            raise
        except BaseException:  # an interrupt: it goes on when the message was taken
            self._receive(content, buffers, directly)
            raise

    @locked
    def _receive(
        self, content: dict[str, Any], buffers: Sequence[Any], directly: bool
    ) -> None:
        if self.device.lost is not None:
            return
        if not directly:
            self._thread = threading.get_ident()
        now, pinged = time.monotonic(), self._pinged
        self._heard, self._pinged = now, None
        if pinged is not None and now - pinged > _SLEPT_S:
            self._sent_again, self._resends = now, 0
            self._wire.connect()
            self.orders.resend()
        if self._leaving is not None and now - self._leaving > _LEAVING_S:
            self._leaving = None
        if "lost" in content:
            self._lose(f"in the page: {content['lost']!s:.200}")
        elif "bye" in content:
            self._lose(_GONE)
        elif "leaving" in content:
            self._leaving = now
        elif "pong" in content:
            self._leaving = None
        elif "apart" in content:
            end(self.tried, None)
        elif "frame" in content:
            if not 1 <= len(buffers) <= 2:
                raise BufferError(f"a frame in {len(buffers)} buffers")
            self._wire.receive(*buffers)
        elif "got" in content:
            self._wake.put(None)
            self._take_all(self.orders.receive(content))

    @locked
    def lose(self, why: str) -> None:
        """Ends all; tensors of the page then raise DeviceLostError."""
        self._lose(why)

    def heard_since(self, moment: float) -> bool:
        return self._heard > moment

    def _take_all(self, bodies: Iterable[Any]) -> None:
        """Takes all, and then raises the first error, if there was one."""
        first = None
        for body in bodies:
            try:
                self._take(body)
            except Exception as error:  # noqa: BLE001 - of the first one, at the end
                first = first or error
        if first is not None:
            raise first

    def _take(self, body: Any) -> None:
        if not isinstance(body, dict):
            malformed("the page's message", f"it does {body!r:.50}")
        self.device.error_count += "fault" in body or "error" in body
        if "reply" in body:
            self._replies.take(body, self.sites)
        elif "fault" in body:
            place = self.sites.of(body.get("site"))
            warn_at(str(body["fault"])[:10_000], *(place or ("<unknown>", 0)))

    def _mend(self) -> None:
        if self.device.lost is not None:
            self._lose(self.device.lost)
        super()._mend()
        with suppress(Exception):
            self._take_all(self.orders.next())

    def _lose(self, why: str) -> None:
        self.device.lose(why)
        self._wake.put(None)  # the thread ends

        def lost() -> Exception:
            with suppress(BufferError):
                self.device.check_alive()
            return DeviceLostError(f"webgpu:{self.device.id} is lost ({why})")

        # Backends of pages stay: they must not keep the widget, nor what the page sent.
        self._post, self._direct = lambda content, buffers: None, None
        self._hang_up()
        self._hang_up = _NOTHING
        self._wire.close()
        end(self.tried, None)
        self._replies.fail(lost)
        for name in [*self._ways]:
            self._give_up(name, lost())
        given, self.given = self.given, {}
        for tensor in given.values():
            tensor.release()
        self._landings.clear()
        self._gone.clear()
        self.orders.clear()

    # --- waiting ----------------------------------------------------------------------

    def can_block(self) -> bool:
        """Whether messages arrive while this thread waits: on another one."""
        used = self._direct_thread if self._direct else self._thread
        return used != threading.get_ident() and not self.is_inside

    def wait(self, future: Future[Any]) -> Any:
        """The result; only where `can_block()`."""
        try:
            while True:
                try:
                    return future.result(timeout=0.5)
                except TimeoutError:
                    if future.done():
                        return future.result()
                    self._look()
        finally:
            del future  # an error in it has this frame

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
            with suppress(RuntimeError):  # the loop was closed
                waiting.cancel()
            del waiting, future  # an error in it has this frame

    @locked
    def _look(self) -> None:
        """Looks for the page, and for lost messages. BufferError: no answer."""
        now = time.monotonic()
        if now - self._looked > _AWAY_S:
            self._pinged = None  # Python has done other things, and not waited for it
        self._looked = now
        if self._pinged is None:
            if now - self._heard > _PING_S:
                self._pinged = now
                self._put({"ping": True})
        elif self._leaving is not None and now - self._pinged > _LEAVING_S:
            self._lose(_GONE)
        elif now - self._pinged > self._patience:
            raise BufferError(
                f"the page has not answered for {self._patience:g} s: is it open, and "
                "can it send messages to a cell that runs? The work goes on there; "
                "await again, in another cell"
            )
        self._wire.tick()
        self.orders.flush()
        self._send_again(now)

    def _send_again(self, now: float) -> None:
        """Each time after twice the time, whatever arrives meanwhile."""
        if not self.orders.is_open:
            self._sent_again, self._resends = now, 0
        elif now - self._sent_again > _RESEND_S * 2**self._resends:
            self._sent_again = now
            self._resends = min(self._resends + 1, _MOST_DOUBLED)
            self.orders.resend()
