"""The kernel's end of a widget: which page has the GPU."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from dlpack_web import Device, Tensor
from dlpack_web.backends import View, owner
from dlpack_web.internal import CPU, calling, parse_device

from .._wire.frame import malformed
from .backend import PageBackend
from .device import PageGPU
from .link import VERSION, Link, Post
from .locked import Locked, locked
from .replies import end, pending, warn_at

# How long a page has to answer before another one takes over, and to connect directly
# before messages go through the notebook.
_TAKE_OVER_S, _CONNECT_S = 3.0, 3.0
# Sessions of pages that ended, of which late messages may arrive; pages that wait; and
# backends of pages that are gone, which explain that, if no tensor needs them.
_MOST_PAST, _MOST_OTHERS, _MOST_GONE = 64, 64, 64

_CLOSED = "the widget was closed"
_NOBODY = (
    "no page shows this widget yet: display it as the result of a cell, and `await "
    "page.ready()` in the next one (in marimo, in a task or a thread)"
)


class Host(Locked):
    """post: sends a message with buffers to all pages of the widget. patience: seconds
    that a page may take to answer. direct: whether it may send messages directly, or the
    address to do so (direct.py)."""

    def __init__(
        self, post: Post, patience: float = 60, direct: bool | str = False
    ) -> None:
        super().__init__()
        self._post, self._patience = post, patience
        self._server: Any = None
        if direct:
            from .direct import Server

            self._server = Server(direct, self.receive)
        self._own = os.urandom(8).hex()
        #: With the page that has the GPU, or had it last.
        self.link: Link | None = None
        self._without: str | None = None  # why the page has no WebGPU
        self._found: Future[None] = pending()
        self._past: deque[str] = deque(maxlen=_MOST_PAST)
        self._others: dict[str, float] = {}  # pages that asked for the GPU, and when
        self._closed = False

    @property
    def device(self) -> Device:
        """The page's. BufferError: there is none yet."""
        link = self.link
        if link is not None and not link.device.is_lost():
            found = parse_device(f"webgpu:{link.device.id}")
            assert found is not None
            return found
        if self._without is not None:
            return CPU
        if link is not None:
            link.device.check_alive()
        raise BufferError(_NOBODY)

    def backend(self) -> PageBackend:
        """Of the page's device; BufferError: there is none."""
        device = self.device
        if device == CPU:
            raise BufferError(f"the page has no WebGPU: {self._without}")
        found = owner(device.id)
        assert isinstance(found, PageBackend)
        return found

    def view(self, tensor: Tensor) -> View:
        """A tensor on the page's device; BufferError: it is elsewhere."""
        backend = self.backend()
        there = View(tensor) if tensor.device.type == 15 else None
        if there is None or there.device is not backend.link.device:
            raise BufferError(
                f"{there or tensor.device} is not on the device of this page, "
                f"{self.device}: use dlw.from_dlpack(x, device=page)"
            )
        return there

    async def ready(self, timeout: float | None) -> Device:
        """The device, as soon as there is one, and messages go the way that they will go."""
        link, found = self.link, self._found
        gone = link is None or link.device.is_lost()
        if gone and self._without is None and not self._closed:
            await _wait(found, timeout)
            link = self.link
        if link is not None and link.offer is not None:
            await _wait(link.tried, _CONNECT_S)
        if self._without is not None:
            call = calling()
            warn_at(
                f"the page has no WebGPU ({self._without}): device=page makes CPU tensors",
                call.filename,
                call.lineno or 0,
            )
        return self.device

    def receive(
        self, content: Any, buffers: Sequence[Any] = (), directly: bool = False
    ) -> None:
        """Takes a message of any page; directly: not by the notebook. BufferError: it is damaged; the page gets a
        message, and nothing else changes."""
        if not isinstance(content, dict) or "dlpack_web" not in content:
            return
        peer = content.get("from")
        if not isinstance(peer, str) or not 0 < len(peer) <= 64:
            raise BufferError(f"a page's session is {peer!r:.100}")
        try:
            if content["dlpack_web"] != VERSION:
                raise BufferError(
                    f"the page's messages are of version {content['dlpack_web']!r:.20}, "
                    f"this kernel's of {VERSION}: reload the page, or restart the kernel"
                )
            if "hello" in content:
                self._meet(peer, content["hello"])
            elif (link := self._link_of(peer)) is not None:
                link.receive(content, buffers, directly)
            elif not self._closed:
                # It was too late with an answer, or another page took over meanwhile.
                self._tell(peer, ended=True)
        except BufferError as error:
            self._tell(peer, problem=str(error)[:1000])
            raise

    def close(self) -> None:
        """Ends all: tensors raise DeviceLostError."""
        self._closed = True
        link = self.link
        if link is not None:
            self._tell(link.peer, closed=True)
            link.lose(_CLOSED)
        if self._server is not None:
            self._server.close()

    @locked
    def _meet(self, peer: str, properties: Any) -> None:
        if self._closed:
            self._tell(peer, refused=_CLOSED)
            return
        if not isinstance(properties, dict):
            malformed("the page's message", f"it says {properties!r:.50} of itself")
        link = self.link
        if (existing := self._link_of(peer)) is not None:
            existing.start()  # the welcome was lost
            self._found_out()
            return
        if peer in self._past:
            self._tell(peer, ended=True)  # a session cannot begin twice
            return
        if link is not None and not link.device.is_lost():
            if not self._is_gone(link, peer):
                return
            link.lose("another page took over")
        self._others.clear()
        self._accept(peer, properties)

    def _is_gone(self, link: Link, peer: str) -> bool:
        """Whether the page that has the GPU is: then another may have it."""
        now = time.monotonic()
        asked = self._others.setdefault(peer, now)
        if len(self._others) > _MOST_OTHERS:
            del self._others[next(iter(self._others))]
        if link.heard_since(asked):
            del self._others[peer]  # it is there, and is asked again the next time
            why = "another page has the GPU of this widget: close it, or go there"
            self._tell(peer, refused=why)
            return False
        if now - asked < _TAKE_OVER_S:
            link.ping()
            return False
        return True

    def _link_of(self, peer: str) -> Link | None:
        """The link with that page, if it has the GPU."""
        link = self.link
        if link is None or link.peer != peer or link.device.is_lost():
            return None
        return link

    def _accept(self, peer: str, properties: dict[str, Any]) -> None:
        if not properties.get("webgpu"):
            self._without = str(properties.get("reason", "no reason"))[:1000]
            self._tell(peer, refused=f"no WebGPU here: {self._without}")
        else:
            gpu = PageGPU(properties)
            self._without = None
            self._past.append(peer)
            server, own = self._server, self._own
            link = Link(self._post, own, peer, gpu, self._patience)
            PageBackend.forget_lost(_MOST_GONE)
            PageBackend(link)
            if server is not None:
                link.offer = server.offer(link, properties.get("origin"))
            self.link = link
            link.start()
            if self._closed:  # meanwhile, on another thread
                link.lose(_CLOSED)
        self._found_out()

    def _found_out(self) -> None:
        end(self._found, None)
        self._found = pending()

    def _tell(self, peer: str, **content: Any) -> None:
        head = {"dlpack_web": VERSION, "from": self._own, "to": peer}
        self._post({**head, **content}, [])


async def _wait(future: Future[None], timeout: float | None) -> None:
    """Until it is done, or the time is over."""
    waiting = asyncio.ensure_future(asyncio.wrap_future(future))
    try:
        await asyncio.wait([waiting], timeout=timeout)
    finally:
        with suppress(RuntimeError):  # the loop was closed
            waiting.cancel()
