"""examples/socket: a server of Python and a page with a GPU, over a WebSocket."""

import http.client
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress

import lab
import pytest
from bundles import bundled

sys.path.append(str(lab.ROOT / "tests" / "docs"))
from documentation import fences

PAGE = lab.ROOT / "examples" / "socket" / "page.js"
NBYTES = 16_000_000
RESULTS = ["equal"] * 4
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """The running example. address: of its page, with the token; origin: of its page."""

    def __init__(self, log):
        self._log = log
        self.address = self.wait_for(1)[0]
        self.origin, _, self.token = self.address.partition("/#")

    def wait_for(self, count, page=None):
        """The lines that it has printed, as soon as there are so many."""
        end = time.monotonic() + lab.LIMIT_S
        while len(lines := self._log.read_text().splitlines()) < count:
            assert time.monotonic() < end, lines
            if page is None:
                time.sleep(0.1)
            else:
                page.wait_for_timeout(100)
        return lines


@contextmanager
def serving(folder, port, *options):
    (folder / ".home").mkdir()
    there = bundled(PAGE, folder)
    python = lab.ROOT / "build" / "libs" / "bin" / "python"
    command = [str(python), str(there / "server.py"), f"--port={port}", *options]
    with lab.running(command, folder, {"PYTHONPATH": lab.PY_PATH}):
        yield Server(folder / ".home" / "log")


class Proxy:
    """Passes connections on to a port. Drops all of them once, after so many bytes from
    there."""

    def __init__(self, port, cut_after=None):
        self._to, self._cut_after = port, cut_after
        self.passed = 0  # bytes from there
        self._open = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        self._drop()

    def _accept(self):
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self._to))
            self._open += [here, there]
            for ends in ((here, there, False), (there, here, True)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, target, counted):
        with suppress(OSError):  # the other end is closed
            while data := source.recv(1 << 16):
                target.sendall(data)
                if counted:
                    self._count(len(data))
            target.shutdown(socket.SHUT_WR)

    def _count(self, nbytes):
        self.passed += nbytes
        if self._cut_after and self.passed > self._cut_after:
            self._cut_after = None
            self._drop()

    def _drop(self):
        while self._open:
            each = self._open.pop()
            with suppress(OSError):  # it has ended
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def proxy():
    """Makes proxies."""
    made = []

    def new(*args):
        made.append(Proxy(*args))
        return made[-1]

    yield new
    for each in made:
        each.close()


def errors_of(page):
    found = []
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def test_arrays_go_to_the_gpu_and_results_come_back(pages, tmp_path):
    with serving(tmp_path, free_port()) as server:
        errors = errors_of(page := pages())
        page.goto(server.address)
        assert server.wait_for(5, page)[1:] == RESULTS
        page.reload()
        assert server.wait_for(9, page)[5:] == RESULTS
        assert errors == []


def test_a_connection_lost_amid_a_tensor_is_opened_again(pages, tmp_path, proxy):
    port = free_port()
    between = proxy(port, NBYTES // 2)
    origin = f"http://127.0.0.1:{between.port}"
    with serving(tmp_path, port, f"--origin={origin}") as server:
        errors = errors_of(page := pages())
        page.goto(server.address)
        assert server.wait_for(5, page)[1:] == RESULTS
        assert errors == []
        assert between._cut_after is None
        # Once, but for the pieces that had no acknowledgement, two, and the page itself.
        assert NBYTES < between.passed < NBYTES + 4 * 2**20


def test_another_page_takes_over(pages, tmp_path):
    with serving(tmp_path, free_port()) as server:
        page, other = pages(), pages()
        page.goto(server.address)
        server.wait_for(5, page)
        other.goto(server.address)
        assert server.wait_for(9, other)[5:] == RESULTS
        page.get_by_text("another page has taken over").wait_for()
        assert other.locator("#status").inner_text() == "connected"


@pytest.mark.parametrize(
    ("token", "origin", "status"),
    [
        ("right", "right", 101),
        ("wrong", "right", 403),
        ("", "right", 403),
        ("right", "http://127.0.0.1:1", 403),
        ("right", None, 403),
    ],
)
def test_a_socket_needs_token_and_origin(tmp_path, token, origin, status):
    port = free_port()
    with serving(tmp_path, port) as server:
        headers = dict(HANDSHAKE)
        if origin:
            headers["Origin"] = server.origin if origin == "right" else origin
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=lab.LIMIT_S)
        query = f"?token={server.token if token == 'right' else token}"
        connection.request("GET", f"/tensors{query}", headers=headers)
        assert connection.getresponse().status == status
        connection.close()


def test_pages_of_another_origin_get_no_socket(pages, tmp_path, proxy):
    port = free_port()
    between = proxy(port)
    with serving(tmp_path, port) as server:
        page = pages()
        page.goto(f"http://127.0.0.1:{between.port}/#{server.token}")
        page.locator("#status", has_text="not connected").wait_for()
        assert server.wait_for(1) == [server.address]


def test_a_frame_that_is_damaged_ends_the_socket_alone(pages, tmp_path):
    with serving(tmp_path, free_port()) as server:
        page = pages()
        page.goto(f"{server.origin}/#wrong")
        code, reason = page.evaluate(
            """(url) => new Promise((resolve) => {
              const socket = new WebSocket(url);
              socket.onopen = () => { socket.send("text"); socket.send(new Uint8Array(20)); };
              socket.onclose = ({ code, reason }) => resolve([code, reason]);
            })""",
            f"{server.origin.replace('http', 'ws')}/tensors?token={server.token}",
        )
        assert code == 1008
        assert "header" in reason
        page.goto("about:blank")
        page.goto(server.address)
        assert server.wait_for(5, page)[1:] == RESULTS


def test_the_documentation_shows_the_example():
    program = "".join(
        PAGE.with_name(each).read_text() for each in ("server.py", "page.js")
    )
    listings = [
        fence
        for fence in fences(lab.PACKAGE / "docs" / "send-tensors.md")
        if fence.language == "js"
        or (fence.language == "python" and "shown" in fence.classes)
    ]
    assert len(listings) == 3
    for fence in listings:
        assert fence.code in program, str(fence)
