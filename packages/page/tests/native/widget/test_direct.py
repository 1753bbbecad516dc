# A page that is connected to the kernel by a WebSocket: real ones, without a browser.
import asyncio
import contextlib
import hmac
import json
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import Future
from socket import SHUT_RDWR, SHUT_WR, create_connection, create_server
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from fake_page import FACTS, Channel, FakePage, end_all, read
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request
from websockets.sync.client import connect

import dlpack_web as dlw
from dlpack_web_page._page import direct
from dlpack_web_page._page import host as hosts
from dlpack_web_page._page import link as links
from dlpack_web_page._page.host import Host

HOME = "https://notebook.example"
A = np.random.default_rng(0).random(3_000_000)  # 24 MB: more than the window


class DirectPage(FakePage):
    """It sends all by the WebSocket, as long as there is one."""

    def __init__(self, channel, facts=FACTS):
        self.socket, self.lock, self.came = None, threading.Lock(), 0
        self.taking, self.number = [], 0
        super().__init__(channel, facts)

    def receive(self, content, buffers):
        with self.lock:
            if content["to"] == self.own and "welcome" in content:
                self.offer = content["direct"]
            super().receive(content, buffers)

    def post(self, content, buffers=()):
        if self.socket is None:
            super().post(content, buffers)
            return
        head = {"dlpack_web": "1", "from": self.own, "to": self.kernel}
        self.socket.send(b"".join(buffers) if buffers else json.dumps(head | content))

    def join(self):
        """Connects, and takes what comes on a thread of its own."""
        self.number += 1
        self.socket = opened(self.offer, self.number)
        assert self.socket.recv(10) == proof(self.offer, "kernel", self.number)
        taking = threading.Thread(
            target=self._take_all, args=[self.socket], daemon=True
        )
        self.taking.append(taking)
        taking.start()

    def _take_all(self, socket):
        try:
            for message in socket:
                self.came += 1
                head = {"to": self.own, "frame": True}
                is_text = isinstance(message, str)
                content = json.loads(message) if is_text else head
                self.receive(content, [] if is_text else [message])
        except ConnectionClosed:
            pass

    def drop(self):
        """The connection breaks."""
        socket, self.socket = self.socket, None
        socket.socket.shutdown(SHUT_RDWR)


def proof(offer, who, number):
    told = f"{who} {number}".encode()
    return hmac.new(offer["secret"].encode(), told, "sha256").hexdigest()


def protocols(offer, number):
    return ["dlpack-web", f"{number}.{proof(offer, 'page', number)}"]


def opened(offer, number=1, origin=HOME, **options):
    """A connection, which the end of the server closes."""
    options = {"subprotocols": protocols(offer, number)} | options
    options |= {"origin": origin, "compression": None, "max_size": None}
    return connect(offer["url"], **options).__enter__()


def until(test, what, most=60):
    end = time.monotonic() + most
    while not test():
        assert time.monotonic() < end, what
        time.sleep(0.005)


@pytest.fixture
def ends():
    """A Host and its page, not yet connected directly."""
    channel = Channel()
    host = channel.host = Host(channel.to_pages, direct=True)
    page = DirectPage(channel, FACTS | {"origin": HOME})
    page.hello()
    channel.deliver()
    yield host, page, channel
    host.close()
    for each in [*channel.pages, page]:
        for thread in each.taking:
            thread.join(60)
            assert not thread.is_alive()
    end_all()


@pytest.fixture
def near(ends):
    """Both, connected."""
    host, page, channel = ends
    page.join()
    until(lambda: host.link.is_direct, "not connected")
    return host, page, channel


def status(offer, number=1, **options):
    with pytest.raises(InvalidStatus) as found:
        opened(offer, number, **options)
    return found.value.response.status_code


def test_nothing_goes_through_the_notebook_and_python_can_wait(near):
    host, page, channel = near
    with dlw.from_dlpack(A, device=host.device) as t:
        assert host.backend().can_block()
        assert (t.numpy() == A).all()
        with t[10:20] as part:
            part.write(np.ones(10))
        assert t.numpy()[9:21].tolist() == [A[9], *np.ones(10), A[20]]
    until(lambda: page.tensors == {}, "a tensor stays in the page")
    assert channel.queue == []
    assert page.came > 6  # pieces of 4 MiB


def test_ready_waits_until_the_page_is_connected(ends):
    host, page, _ = ends
    joining = threading.Timer(0.2, page.join)
    joining.start()
    assert asyncio.run(host.ready(60)) == host.device
    assert host.link.is_direct
    joining.join()


def test_ready_waits_only_where_there_is_something_to_wait_for(ends, monkeypatch):
    monkeypatch.setattr(hosts, "_CONNECT_S", 10_000)
    host, page, channel = ends
    page.post({"apart": True})
    page.post({"apart": True})  # as after each connection that broke
    channel.deliver()
    assert asyncio.run(host.ready(60)) == host.device
    page.join()
    until(lambda: host.link.is_direct, "not connected")
    page.drop()
    until(lambda: not host.link.is_direct, "still connected")
    assert asyncio.run(host.ready(60)) == host.device


def test_ready_does_not_wait_for_a_page_that_does_not_connect(ends, monkeypatch):
    monkeypatch.setattr(hosts, "_CONNECT_S", 0.01)
    host, _, _ = ends
    assert asyncio.run(host.ready(60)) == host.device
    assert not host.link.is_direct


def test_a_page_that_is_gone_before_it_is_connected_ends_ready(ends, monkeypatch):
    monkeypatch.setattr(hosts, "_CONNECT_S", 10_000)
    host, _, _ = ends
    leaving = threading.Timer(0.1, host.link.lose, ["a test"])
    leaving.start()
    with pytest.raises(dlw.DeviceLostError, match="a test"):
        asyncio.run(host.ready(60))


def test_before_it_is_connected_the_notebook_carries_all(ends):
    host, _, channel = ends
    assert not host.link.is_direct
    with dlw.from_dlpack(A[:5], device=host.device) as t:
        assert (read(channel, t) == A[:5]).all()


def test_a_connection_that_breaks_amid_pieces_loses_nothing(near):
    host, page, channel = near
    for _ in range(3):
        with dlw.from_dlpack(np.zeros(A.size), device=host.device) as t:
            came = page.came
            writing = threading.Thread(target=t.write, args=[A])
            writing.start()
            until(lambda before=came: page.came > before, "nothing came")
            page.drop()
            end = time.monotonic() + 60
            while writing.is_alive():
                assert time.monotonic() < end
                channel.deliver()
                time.sleep(0.001)
            until(lambda: not host.link.is_direct, "still connected")
            assert (read(channel, t) == A).all()
        page.join()
        until(lambda: host.link.is_direct, "not connected again")


def test_what_went_into_a_connection_that_had_ended_is_sent_again(near):
    host, page, channel = near
    link = host.link
    with dlw.from_dlpack(A[:5], device=host.device) as t:
        assert (t.numpy() == A[:5]).all()

    def lose(content, buffers):
        pass

    link.attach(lose)  # as a newer connection does
    page.drop()
    until(lambda: len(page.taking) and not page.taking[0].is_alive(), "it goes on")
    with dlw.from_dlpack(A[:5], device=host.device) as t:
        assert link.is_direct  # the end of the older one does not matter
        link.detach(lose)
        assert not link.is_direct
        assert not host.backend().can_block()  # the notebook's messages arrive here
        began = time.monotonic()
        assert (read(channel, t) == A[:5]).all()
        assert time.monotonic() - began < 25  # at once, and not when all is sent again


@pytest.mark.parametrize("way", ["bye, directly", "bye", "lost", "another", "closed"])
def test_the_connection_of_a_page_that_is_gone_is_closed(near, way):
    host, page, channel = near
    socket, link = page.socket, host.link
    if way == "bye, directly":
        page.post({"bye": True})
    elif way == "closed":
        host.close()
    elif way == "another":
        link.lose("another page took over")
    else:
        page.socket = None
        page.post({way: "a reason"})
        channel.deliver()
    until(link.device.is_lost, "it was not heard")
    assert not link.is_direct
    page.taking[0].join(60)
    assert not page.taking[0].is_alive()
    with pytest.raises(ConnectionClosed):
        socket.send("{}")


def test_a_page_speaks_for_itself_alone(near):
    """Also one that is gone, as long as its connection is there."""
    host, page, channel = near
    link = host.link
    other = DirectPage(channel, FACTS | {"origin": HOME})
    head = {"dlpack_web": "1", "to": page.kernel}
    for peer in other.own, "0" * 16, "", None, [page.own]:
        for content in {"hello": FACTS}, {"bye": True}, {"lost": "a"}:
            page.socket.send(json.dumps(head | {"from": peer} | content))
    with dlw.from_dlpack(A[:9], device=host.device) as t:
        assert (t.numpy() == A[:9]).all()
    assert channel.queue == []  # it was not answered either
    assert host.link is link
    link._hang_up = lambda: None  # it stays open for a while
    link.lose("a test")
    other.hello()
    channel.deliver()
    page.socket.send(json.dumps(head | {"from": other.own, "bye": True}))
    with contextlib.suppress(ConnectionClosed):
        page.socket.send("{}")
    other.join()
    until(lambda: host.link.is_direct, "the next page cannot connect")
    assert not host.link.device.is_lost()


def test_a_warning_that_is_an_error_ends_no_connection(near):
    host, page, _ = near
    with dlw.empty(4, device=host.device) as t:
        t.write(np.ones(4, "f4"))
        site = page.ran or 1
        with page.lock, warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(3):
                page.orders.send({"fault": "a fault", "site": site})
            until(lambda: host.link.orders._got >= 3, "they were not taken")
        assert t.numpy().tolist() == [1] * 4
    assert host.link.is_direct


@pytest.mark.parametrize("silence", [3.5, 30, 59])
def test_a_connection_that_breaks_costs_nothing_while_the_page_lives(
    near, silence, monkeypatch
):
    """Its messages come by the notebook, as late as `patience` allows."""
    host, page, channel = near
    clock = SimpleNamespace(now=time.monotonic(), sleep=time.sleep)
    clock.monotonic = lambda: clock.now
    t = dlw.from_dlpack(A[:9], device=host.device)
    page.drop()
    until(lambda: not host.link.is_direct, "it is connected")
    monkeypatch.setattr(links, "time", clock)

    async def late():
        reading = asyncio.ensure_future(t.to_host())
        end = clock.now + silence
        while clock.now < end:
            await asyncio.sleep(0)
            clock.now += 0.5
            host.link._look()
        while not reading.done():
            channel.deliver()
            await asyncio.sleep(0)
        return await reading

    assert (asyncio.run(late()) == A[:9]).all()
    t.release()


def test_a_page_that_left_with_its_connection_is_noticed_soon(near):
    host, page, channel = near
    t = dlw.from_dlpack(A[:5], device=host.device)
    page.post({"leaving": True})
    until(lambda: host.link._leaving, "it was not heard")
    page.drop()
    channel.pages.clear()
    began = time.monotonic()
    with pytest.raises(dlw.DeviceLostError, match="closed or reloaded"):
        read(channel, t)
    assert time.monotonic() - began < 30


WITHOUT = {
    "none": None,
    "another": ["dlpack-web", f"1.{'0' * 64}"],
    "cut": lambda given: [given[0], given[1][:-1]],
    "longer": lambda given: [given[0], given[1] + "0"],
    "another number": lambda given: [given[0], "2" + given[1][1:]],
    "no number": lambda given: [given[0], given[1][1:]],
    "a large number": lambda given: [given[0], "9" * 5000 + given[1][1:]],
    "alone": ["dlpack-web"],
    "in front": lambda given: [given[1], given[0]],
}


@pytest.mark.parametrize("how", WITHOUT)
def test_without_the_proof_there_is_no_way_in(ends, how):
    host, page, _ = ends
    given = WITHOUT[how]
    given = given(protocols(page.offer, 1)) if callable(given) else given
    assert status(page.offer, subprotocols=given) == 403
    assert not host.link.is_direct
    for origin in "https://evil.example", "null", None:
        assert status(page.offer, origin=origin) == 403
    page.join()  # nothing of that was spent


def test_the_address_has_no_secret_and_a_proof_is_good_for_one_connection(near):
    host, page, _ = near
    assert page.offer["url"] == f"ws://127.0.0.1:{host._server.port}/"
    assert status(page.offer, 1) == 403
    page.number = 5
    page.join()
    for number in range(7):
        assert status(page.offer, number) == 403
    page.join()


@pytest.mark.parametrize("name", ["Origin", "Sec-WebSocket-Protocol"])
def test_headers_that_come_twice(ends, name, caplog):
    """The proof is looked at first, and neither raises."""
    host, page, _ = ends
    server, (first, own) = host._server, protocols(page.offer, 1)
    headers = [("Origin", HOME), ("Sec-WebSocket-Protocol", first)]
    headers += [("Sec-WebSocket-Protocol", own)]
    assert server._proved(Request("/", Headers(headers))) is not None
    assert server._proved(Request("/", Headers([*headers, ("Origin", HOME)]))) is None
    assert (
        status(page.offer, additional_headers=[(name, "https://evil.example")]) == 403
    )
    assert caplog.records == []


def test_bytes_that_are_not_ascii_are_refused(ends):
    """Older versions of websockets pass them on."""
    host, _, _ = ends
    for given in "1.\udcff", "\udcff", "\u0661.a", "1", ".", "-1.a", "1_0.a":
        headers = SimpleNamespace(
            get_all=lambda _, given=given: [f"dlpack-web, {given}"]
        )
        assert host._server._proved(SimpleNamespace(headers=headers)) is None


STRANGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"\xff" * 100,
    b"GET /" + b"a" * 20_000,
    b"",
]


@pytest.mark.parametrize("given", STRANGE, ids=lambda given: repr(given[:16]))
def test_what_strangers_send_is_not_in_the_notebook(ends, given, caplog, capfd):
    _, page, _ = ends
    with create_connection(("127.0.0.1", port_of(page))) as stranger:
        stranger.sendall(given)
        stranger.shutdown(SHUT_WR)
        while stranger.recv(1 << 16):
            pass
    page.join()
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_half_open_connections_are_few_and_the_page_gets_in(ends):
    host, page, _ = ends
    server = host._server
    strangers = [create_connection(("127.0.0.1", port_of(page))) for _ in range(60)]
    try:
        page.join()
        until(lambda: host.link.is_direct, "the page does not get in")
        assert len(server._strangers) <= direct._MOST_STRANGERS
        for each in strangers:
            each.setblocking(False)
        until(lambda: sum(map(is_closed, strangers)) >= 44, "they are not closed")
    finally:
        for each in strangers:
            each.close()
    until(lambda: not server._strangers, "they stay")


def is_closed(socket):
    try:
        return socket.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def port_of(page):
    return urlsplit(page.offer["url"]).port


def test_an_interrupt_as_it_starts_frees_the_port(monkeypatch):
    made = []

    class Interrupted(Future):
        def result(self, timeout=None):
            made.append(super().result(timeout))
            raise KeyboardInterrupt

    monkeypatch.setattr(direct, "Future", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Host(lambda *_: None, direct=True)

    def is_free():
        with contextlib.suppress(OSError), create_server(("127.0.0.1", made[0])):
            return True
        return False

    until(is_free, "it listens")


def test_before_there_is_a_page_nothing_connects():
    host = Host(lambda *_: None, direct=True)
    try:
        url = f"ws://127.0.0.1:{host._server.port}/"
        assert status({"url": url, "secret": ""}) == 403
    finally:
        host.close()


def test_the_proof_of_a_page_that_is_gone_is_refused(ends):
    host, page, channel = ends
    before = page.offer
    page.post({"bye": True})
    channel.deliver()
    assert status(before) == 403
    other = DirectPage(channel, FACTS | {"origin": HOME})
    other.hello()
    channel.deliver()
    assert status(before) == 403
    other.join()
    until(lambda: host.link.is_direct, "the next page cannot connect")


def test_the_last_connection_of_a_page_is_the_one(near):
    host, page, _ = near
    page.join()
    page.taking[0].join(60)  # until its connection ends
    assert not page.taking[0].is_alive()
    with dlw.from_dlpack(A, device=host.device) as t:
        assert (t.numpy() == A).all()


@pytest.mark.parametrize("end", ["the next one", "the page's"])
def test_a_connection_whose_other_side_takes_nothing_ends(end, ends):
    host, page, _ = ends
    server, page.number = host._server, 1
    full = opened(page.offer, max_queue=1)
    until(lambda: host.link.is_direct, "not connected")
    for _ in range(3):
        host.link._direct({}, [b""])
    until(lambda: full.recv_messages.paused, "it is read")
    # What is sent waits from now on.
    server._loop.call_soon_threadsafe(server._socket.pause_writing)
    if end == "the next one":
        page.join()
    host.link.lose("a test")
    until(lambda: server._socket is None, "it stays open", 10)


@pytest.mark.parametrize(
    "message",
    [
        "{",
        "[" * 100_000,
        "[]",
        "null",
        b"",
        b"x" * 100,
        b"\xff" * 8,
        '{"dlpack_web": "1"}',
    ],
    ids=lambda message: repr(message)[:12],
)
def test_damaged_messages_change_nothing(near, message):
    host, page, _ = near
    with dlw.from_dlpack(A[:9], device=host.device) as t:
        page.socket.send(message)
        assert (t.numpy() == A[:9]).all()


def test_the_page_gets_to_know_what_is_wrong_with_a_frame(near):
    _, page, channel = near
    page.socket.send(b"x" * 100)
    until(lambda: channel.queue, "no message")
    assert "problem" in channel.queue[0][1]


def test_a_message_that_is_too_large_ends_the_connection_alone(near):
    host, page, channel = near
    page.socket.send(bytes(17 << 20))
    until(lambda: not host.link.is_direct, "it was taken")
    page.socket = None
    with dlw.from_dlpack(A[:9], device=host.device) as t:
        assert (read(channel, t) == A[:9]).all()


def test_the_end_of_the_widget_frees_the_port(near):
    host, page, _ = near
    server = host._server
    host.close()
    until(server._loop.is_closed, "the thread runs")
    with pytest.raises(ConnectionRefusedError):
        opened(page.offer)
    host.close()


NONE = [
    "http://host/",
    "host",
    5,
    b"ws://host:1",
    "ws://host/",
    "ws://host:x/",
    "ws://host:99999/",
]


@pytest.mark.parametrize("address", NONE)
def test_an_address_that_is_none(address):
    with pytest.raises(ValueError, match=r"direct is .*wss://host/proxy"):
        Host(lambda *_: None, direct=address)


def test_a_port_of_the_callers_choice(ends):
    host, _, _ = ends
    with create_server(("127.0.0.1", 0)) as taken:
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match="in use"):
            Host(lambda *_: None, direct=address)
    there = Host(lambda *_: None, direct=address)
    try:
        opened(there._server.offer(host.link, None)).close()
    finally:
        there.close()


def test_the_address_that_the_page_sees(ends):
    host, _, _ = ends
    there = Host(lambda *_: None, direct="wss://hub.example/user/me/proxy/{port}")
    try:
        offer = there._server.offer(host.link, None)
        port = there._server.port
        assert offer["url"] == f"wss://hub.example/user/me/proxy/{port}/"
        # A proxy may pass on its own part of the path.
        opened(offer | {"url": f"ws://127.0.0.1:{port}/proxy/{port}/"}).close()
    finally:
        there.close()


def test_without_the_package_the_error_names_it():
    code = """
import sys
sys.modules["websockets"] = None
from dlpack_web_page._page.host import Host
Host(print)
try:
    Host(print, direct=True)
except ModuleNotFoundError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'dlpack-web[widget]'" in found.stdout
