"""A WebSocket of the kernel for its page, which is faster than the notebook's channel
(js/src/widget/direct.ts).

Binary messages are frames of the wire, text ones the other messages of link.py. The
notebook's channel carries a secret, from which both ends make a proof for each connection:
the page sends the connection's number and its proof as a subprotocol, the kernel its own as
the first message. Numbers increase, so a proof is of no use for a second connection.
"""

import asyncio
import hmac
import json
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from .link import VERSION, Link

try:
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Request, Response
    from websockets.typing import Subprotocol
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("websockets"):
        raise
    raise ModuleNotFoundError(
        "direct= needs the package websockets, 13 or newer: pip install "
        "'dlpack-web[widget]'",
        name="websockets",
    ) from None

_HERE = "ws://127.0.0.1:{port}/"
_PROTOCOL = "dlpack-web"
_MOST = 5 << 20  # bytes of a message: the largest piece, and its header
_MOST_QUEUED = 4  # messages that wait to be taken
# Connections that have not proved to be the page's, and how long they have for that.
_MOST_STRANGERS, _PROVE_S = 16, 5
_CLOSE_S = 1  # how long the other side has to take the end of a connection
# What strangers send is not worth a line in the notebook.
_LOG = logging.getLogger("dlpack_web.direct")
_LOG.disabled = True

#: Text, or a frame in parts, which websockets sends without joining them.
type _Message = str | Sequence[Any]
type Receive = Callable[[Any, Sequence[Any], bool], object]


@dataclass(eq=False)
class _Offer:
    """A page, and the secret of both ends. last: the number of its last connection."""

    link: Link
    origin: str | None
    secret: str
    last: int = 0

    def proof(self, who: str, number: int) -> str:
        told = f"{who} {number}".encode()
        return hmac.new(self.secret.encode(), told, "sha256").hexdigest()


class _Connection(ServerConnection):
    #: Connections that have not proved to be the page's, the oldest first.
    strangers: dict[ServerConnection, None]
    #: What it has proved, and its number.
    proved: tuple[_Offer, int] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.strangers[self] = None
        if len(self.strangers) > _MOST_STRANGERS:
            oldest = next(iter(self.strangers))
            del self.strangers[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.strangers.pop(self, None)
        super().connection_lost(exc)


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
        self._strangers: dict[ServerConnection, None] = {}
        self._closing: set[asyncio.Task[None]] = set()
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
        page_origin = origin[:1000] if isinstance(origin, str) else None
        self._offer = _Offer(link, page_origin, secrets.token_urlsafe(24))
        url = self._address.replace("{port}", str(self.port))
        return {"url": url, "secret": self._offer.secret}

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
        class Connection(_Connection):
            strangers = self._strangers

        async with serve(
            self._serve,
            "127.0.0.1",
            0 if "{port}" in self._address else urlsplit(self._address).port,
            process_request=self._refusal,
            create_connection=Connection,
            subprotocols=[Subprotocol(_PROTOCOL)],
            logger=_LOG,
            compression=None,
            max_size=_MOST,
            max_queue=_MOST_QUEUED,
            open_timeout=_PROVE_S,
            close_timeout=_CLOSE_S,
        ) as server:
            started.set_result(next(iter(server.sockets)).getsockname()[1])
            await self._ended.wait()

    def _refusal(self, socket: ServerConnection, request: Request) -> Response | None:
        assert isinstance(socket, _Connection)
        found = self._proved(request)
        if found is None:
            return socket.respond(HTTPStatus.FORBIDDEN, "This is not your kernel.\n")
        offer, offer.last = found[0], found[1]
        socket.proved = found
        self._strangers.pop(socket, None)
        return None

    def _proved(self, request: Request) -> tuple[_Offer, int] | None:
        """The offer that a request has a proof for, from the page that got it, and the
        number of the connection."""
        offer = self._offer
        if offer is None or offer.link.device.is_lost():
            return None
        given = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
        number, _, proof = given.rpartition(",")[2].strip().partition(".")
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            return None
        # Older versions of websockets pass on bytes that are not ASCII.
        found = proof.encode(errors="surrogateescape")
        expected = offer.proof("page", int(number)).encode()
        if not secrets.compare_digest(found, expected) or int(number) <= offer.last:
            return None
        origins = request.headers.get_all("Origin")
        at_home = offer.origin is None or origins == [offer.origin]
        return (offer, int(number)) if at_home else None

    async def _serve(self, socket: ServerConnection) -> None:
        assert isinstance(socket, _Connection)
        assert socket.proved is not None
        offer, number = socket.proved
        before, self._socket = self._socket, socket
        if before is not None:
            before.transport.abort()  # it may be half open, and close() waits
            await before.wait_closed()
            if self._socket is not socket:
                return
        link, messages = offer.link, asyncio.Queue[_Message]()

        def send(content: dict[str, Any], buffers: Sequence[Any]) -> None:
            message = buffers or json.dumps(content)
            with suppress(RuntimeError):  # it has ended: the link sends it again
                self._loop.call_soon_threadsafe(messages.put_nowait, message)

        def hang_up() -> None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._close, socket)

        messages.put_nowait(offer.proof("kernel", number))
        sending = asyncio.create_task(_send_all(messages, socket))
        link.attach(send, hang_up)
        try:
            with suppress(ConnectionClosed):
                async for message in socket:
                    self._take(link, message)
        finally:
            sending.cancel()
            link.detach(send)
            if self._socket is socket:
                self._socket = None  # it keeps what it could not send, in its errors

    def _close(self, socket: ServerConnection) -> None:
        task = self._loop.create_task(socket.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        self._loop.call_later(_CLOSE_S, socket.transport.abort)

    def _take(self, link: Link, message: str | bytes) -> None:
        """Takes a message as one of its page, and of no other."""
        content: Any = {"dlpack_web": VERSION, "from": link.peer, "frame": True}
        if isinstance(message, str):
            content = _parsed(message)
            if not isinstance(content, dict) or content.get("from") != link.peer:
                return
        buffers = [] if isinstance(message, str) else [message]
        try:
            self._receive(content, buffers, True)
        except BufferError:
            pass  # the page gets to know what is wrong
        except Exception as error:  # noqa: BLE001 - a warning, for example: it goes on
            what = "a message of the page failed"
            self._loop.call_exception_handler({"message": what, "exception": error})


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
