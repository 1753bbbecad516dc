"""Sends an array to a page over a WebSocket, and compares what the page's GPU made of it
with NumPy."""

import argparse
import asyncio
import secrets
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from dlpack_web_page.wire import Wire, joined

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.bundle.js", "text/javascript; charset=utf-8"),
}
# A frame: a piece of at most 4 MiB, and its header.
MAX_SIZE = (4 << 20) + (1 << 17)


class Channel:
    """A wire to one page at a time, over one socket after another."""

    def __init__(self, **options):
        self.wire = Wire(self._put, **options)
        self._frames = asyncio.Queue()

    def _put(self, header, payload):
        self._frames.put_nowait(joined(header, payload))

    async def serve(self, socket):
        self._frames.put_nowait(None)
        # The wire sends again what the last socket has lost.
        frames = self._frames = asyncio.Queue()
        self.wire.connect()
        sender = asyncio.create_task(self._send(socket, frames))
        try:
            async for frame in socket:
                if frames is not self._frames:
                    break  # its page is another one, or has a newer socket
                if isinstance(frame, bytes):
                    self.wire.receive(frame)
        except ConnectionClosed:
            pass  # the page connects again
        except BufferError as error:
            await socket.close(1008, str(error)[:50])  # not a frame of this wire
        finally:
            sender.cancel()

    async def _send(self, socket, frames):
        with suppress(ConnectionClosed):
            while (frame := await frames.get()) is not None:
                await socket.send(frame)
            await socket.close(4000, "another page has taken over")


class Program:
    """Sends an array, and then some parts of it, each after the last result has come."""

    def __init__(self, size=4_000_000, parts=3):
        self.x = np.random.default_rng(0).random(size, dtype="float32")
        self.parts = parts
        self.channel = Channel(on_tensor=self.compare, on_session=self.begin)
        self.begin()

    def begin(self):
        """At the start, and when the page was reloaded."""
        self.left = self.parts
        self.remote = self.channel.wire.send("x", self.x)

    def compare(self, received):
        equal = np.array_equal(received.tensor.numpy(), self.x * self.x)
        print("equal" if equal else "different", flush=True)
        if self.left:
            self.left -= 1
            part = slice(self.left * 1000, (self.left + 1) * 1000)
            self.x[part] += 1
            self.remote[part].write(self.x[part])


def checked(token):
    """Answers requests for the page; those for a socket need the token."""

    def answer(connection, request):
        url = urlsplit(request.path)
        if url.path in FILES:
            name, kind = FILES[url.path]
            text = Path(__file__).with_name(name).read_text("utf-8")
            response = connection.respond(HTTPStatus.OK, text)
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = kind
            return response
        given = parse_qs(url.query).get("token", [""])[0]
        if not secrets.compare_digest(given.encode(), token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "the token is wrong\n")
        return None  # it becomes a socket

    return answer


def listen(channel, port, origin, token):
    """Sockets of that origin's pages, with that token."""
    return serve(
        channel.serve,
        "127.0.0.1",
        port,
        process_request=checked(token),
        origins=[origin],
        max_size=MAX_SIZE,
        compression=None,
    )


async def main(port, origin):
    token = secrets.token_urlsafe()
    program = Program()
    async with listen(program.channel, port, origin, token) as server:
        print(f"{origin}/#{token}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--origin", help="of the page, if it is behind a proxy")
    args = parser.parse_args()
    asyncio.run(main(args.port, args.origin or f"http://127.0.0.1:{args.port}"))
