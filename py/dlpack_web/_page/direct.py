"""A WebSocket of the kernel for its page, which is faster than the notebook's channel
(js/src/widget/direct.ts).

Binary messages are frames of the wire, text ones the other messages of link.py. Both ends
prove what they are with words that the notebook's channel has carried: the page by the
last part of the address, the kernel by its first message.
"""

import asyncio
import json
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .link import VERSION, Link

try:
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Request, Response
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("websockets"):
        raise
    raise ModuleNotFoundError(
        "direct= needs the package websockets, 13 or newer: pip install "
        "'dlpack-web[widget]'",
        name="websockets",
    ) from None

_HERE = "ws://127.0.0.1:{port}/"
_MOST = 16 << 20  # bytes of a message

#: Text, or a frame in parts, which websockets sends without joining them.
type _Message = str | Sequence[Any]
type Receive = Callable[[Any, Sequence[Any]], object]


class _Offer(NamedTuple):
    """A page, and what both ends prove themselves with."""

    link: Link
    origin: str | None
    token: str
    proof: str


class Server:
    """It listens on 127.0.0.1, in a thread of its own, until `close`. address: as the
    page sees it, with `{port}` for the number of a free port, or with the port's number
    itself; True: a free port of this machine. receive: takes the page's messages.
    OSError: the port is not free."""

    def __init__(self, address: str | bool, receive: Receive) -> None:
        self._address = _HERE if address is True else _checked(address)
        self._receive = receive
        self._offer: _Offer | None = None
        self._socket: ServerConnection | None = None
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        started: Future[int] = Future()
        threading.Thread(
            target=self._run, args=[started], name="dlpack_web direct", daemon=True
        ).start()
        try:
            self.port = started.result()
        except BaseException:  # an interrupt, while it starts
            self.close()
            raise

    def offer(self, link: Link, origin: Any) -> dict[str, str]:
        """What the page of a link needs to connect; no earlier page can, then. origin:
        of the page, if it has said so."""
        token, proof = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        known = origin if isinstance(origin, str) else None
        self._offer = _Offer(link, known, token, proof)
        url = self._address.replace("{port}", str(self.port)) + token
        return {"url": url, "proof": proof}

    def close(self) -> None:
        """Closes the WebSocket, if there is one, and frees the port."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._ended.set)

    def _run(self, started: Future[int]) -> None:
        try:
            self._loop.run_until_complete(self._main(started))
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            self._loop.close()

    async def _main(self, started: Future[int]) -> None:
        async with serve(
            self._serve,
            "127.0.0.1",
            0 if "{port}" in self._address else urlsplit(self._address).port,
            process_request=self._refusal,
            compression=None,
            max_size=_MOST,
            close_timeout=1,
        ) as server:
            started.set_result(next(iter(server.sockets)).getsockname()[1])
            await self._ended.wait()

    def _refusal(self, socket: ServerConnection, request: Request) -> Response | None:
        if self._offer_to(request) is not None:
            return None
        return socket.respond(HTTPStatus.FORBIDDEN, "This is not your kernel.\n")

    def _offer_to(self, request: Request) -> _Offer | None:
        """The offer that a request has the token of, from the page that got it."""
        offer, given = self._offer, request.path.rpartition("/")[2]
        if offer is None or offer.link.record.is_lost():
            return None
        # Older versions of websockets pass on bytes that are not ASCII.
        found = given.encode(errors="surrogateescape")
        known = secrets.compare_digest(found, offer.token.encode())
        at_home = offer.origin in (None, request.headers.get("Origin"))
        return offer if known and at_home else None

    async def _serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        offer = self._offer_to(socket.request)
        if offer is None:  # another page has come meanwhile
            return
        before, self._socket = self._socket, socket
        if before is not None:
            await before.close()
        link, messages = offer.link, asyncio.Queue[_Message]()

        def send(content: dict[str, Any], buffers: Sequence[Any]) -> None:
            message = buffers or json.dumps(content)
            with suppress(RuntimeError):  # it has ended: the link sends it again
                self._loop.call_soon_threadsafe(messages.put_nowait, message)

        messages.put_nowait(offer.proof)
        sending = asyncio.create_task(_send_all(messages, socket))
        link.attach(send)
        head = {"dlpack_web": VERSION, "from": link.peer, "frame": True}
        try:
            with suppress(ConnectionClosed):
                async for message in socket:
                    with suppress(BufferError):  # the page gets to know what is wrong
                        if isinstance(message, bytes):
                            self._receive(head, [message])
                        else:
                            self._receive(_parsed(message), [])
        finally:
            sending.cancel()
            link.detach(send)
            if self._socket is socket:
                self._socket = None  # it keeps what it could not send, in its errors


async def _send_all(
    messages: asyncio.Queue[_Message], socket: ServerConnection
) -> None:
    with suppress(ConnectionClosed):
        while True:
            await socket.send(await messages.get())


def _parsed(message: str) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None


def _checked(address: Any) -> str:
    if isinstance(address, str) and address.startswith(("ws://", "wss://")):
        with suppress(ValueError):  # no number
            if "{port}" in address or urlsplit(address).port:
                return address if address.endswith("/") else address + "/"
    raise ValueError(
        f"direct is {address!r:.200}, and neither True nor the address of the kernel's "
        "port as the page sees it: 'ws://127.0.0.1:8765/' or "
        "'wss://host/proxy/{port}/'"
    )
