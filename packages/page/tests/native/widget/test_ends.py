# How the session with a page ends: reloads, other pages, lost devices, silence.
import asyncio
import gc
import itertools
import time
import weakref

import numpy as np
import pytest
from fake_page import FACTS, FakePage, end_all, joined, left_here, read, tidied

import dlpack_web as dlw
from dlpack_web_page._page import host as hosts
from dlpack_web_page._page import link as links
from dlpack_web_page._page.tensors import Tensors

A = np.arange(60_000, dtype="f4")


def test_a_page_that_is_gone_does_not_keep_the_widget():
    host, page, channel = joined()
    page.post({"bye": True})
    channel.deliver()
    gone = weakref.ref(host)
    del host
    end_all()
    del page, channel
    gc.collect()
    assert gone() is None


def test_a_reload_loses_tensors_and_the_next_page_takes_over():
    host, page, channel = joined()
    old, tensors, first = dlw.empty(3, device=host.device), Tensors(host), host.device
    tensors["x"] = old
    page.post({"bye": True})
    again = FakePage(channel)
    again.hello()
    channel.deliver()
    assert host.device != first
    assert (len(tensors), again.gives) == (0, [])
    with pytest.raises(BufferError, match="is not on the device of this page"):
        tensors["x"] = old
    with dlw.from_dlpack(np.arange(3.0), device=host.device) as t:
        tensors["x"] = t
        assert read(channel, t).tolist() == [0, 1, 2]
    assert again.given["x"][1].tolist() == [0, 1, 2]
    old.release()


def test_a_page_lost_amid_an_upload_leaves_nothing(monkeypatch):
    monkeypatch.setattr(links, "_PING_S", 0)
    monkeypatch.setattr(links, "_LEAVING_S", 0)
    host, page, channel = joined()
    page.post({"leaving": True})
    channel.deliver()
    host.backend().link._thread = -1  # messages arrive on another thread
    a = np.zeros(3_000_000, "f4")
    gc.disable()
    try:
        with pytest.raises(dlw.DeviceLostError, match="its page was closed"):
            dlw.from_dlpack(a, device=host.device)
        channel.queue.clear()  # which are sent from the memory itself
        assert dlw.live_tensors() == 0
    finally:
        gc.enable()


def test_a_second_page_is_refused_while_the_first_answers(monkeypatch):
    host, page, channel = joined()
    other = FakePage(channel)
    device = host.device
    monkeypatch.setattr(hosts, "_TAKE_OVER_S", 1e-9)  # less than from hello to hello
    for _ in range(4):
        other.hello()
        channel.deliver()
    assert host.device == device
    assert len(other.said) == 2
    assert "another page has the GPU" in other.said[-1]["refused"]
    channel.pages.remove(page)  # it crashed: no bye, no pong
    other.hello()
    channel.deliver()
    other.hello()
    channel.deliver()
    assert host.device != device
    assert other.kernel


ENDS = {
    "bye": (lambda host, page: page.post({"bye": True}), "closed or reloaded"),
    "lost": (lambda host, page: page.post({"lost": "a driver crashed"}), "a driver"),
    "close": (lambda host, page: host.close(), "the widget was closed"),
    "another": (lambda host, page: host.link.lose("another took over"), "another"),
}


@pytest.mark.parametrize("way", ENDS)
def test_a_page_that_is_gone_leaves_nothing(way):
    end, why = ENDS[way]
    host, page, channel = joined()
    link, tensors = host.link, Tensors(host)
    t = dlw.from_dlpack(A, device=host.device)
    tensors["x"] = t
    for number in range(2, 50):  # the first one is missing
        page.post({"got": 0, "n": page.orders._last + number, "do": {"x": "y" * 1000}})
    channel.deliver(60)
    dlw.from_dlpack(A, device=host.device).release()
    assert link.orders._early
    end(host, page)
    channel.deliver()
    assert link.device.is_lost()
    for use in lambda: read(channel, t), lambda: t.write(A):
        with pytest.raises(dlw.DeviceLostError, match=why):
            use()
    assert ([*tensors], tensors.get("x")) == ([], None)
    with pytest.raises(KeyError):
        del tensors["x"]
    with pytest.raises(dlw.DeviceLostError, match="is lost"):
        tensors["x"] = t
    t.release()
    assert dlw.live_tensors() == 2 * len(page.wire._receiving._ids)
    assert not left_here(link)
    assert not link.orders._early
    assert not link._gone
    if way == "close":
        assert page.said[-1]["closed"]
        with pytest.raises(dlw.DeviceLostError, match=why):
            _ = host.device


@pytest.mark.parametrize(
    ("says", "patience", "error", "why"),
    [
        ([], 0, BufferError, "the page has not answered for 0 s"),
        ([{"leaving": True}], 60, dlw.DeviceLostError, "its page was closed or rel"),
        ([{"leaving": True}, {"pong": True}], 0, BufferError, "has not answered for 0"),
        ([{"leaving": True}, {"got": 0}], 0, BufferError, "has not answered for 0 s"),
    ],
)
def test_a_page_that_does_not_answer_ends_the_wait(
    says, patience, error, why, monkeypatch
):
    """And is gone if it said that it may leave, and did not stay after all."""
    monkeypatch.setattr(links, "_PING_S", 0)
    monkeypatch.setattr(links, "_LEAVING_S", 0)
    host, page, channel = joined(patience=patience)
    t = dlw.empty(3, device=host.device)
    for each in says:
        channel.deliver()
        page.post(each)
    channel.deliver()
    channel.pages.remove(page)
    with pytest.raises(error, match=why):
        read(channel, t)
    t.release()


@pytest.mark.parametrize(
    "message", [{"pong": True}, {"got": 1}, {"bye": True}, {"hello": FACTS}]
)
def test_a_page_that_was_given_up_is_told(message):
    host, page, channel = joined()
    host.backend().link.lose("it did not answer")
    page.post(message)
    channel.deliver()
    assert page.said == [
        {"dlpack_web": "1", "from": page.kernel, "to": page.own, "ended": True}
    ]
    other = FakePage(channel)
    other.hello()
    channel.deliver()
    page.post({"pong": True})
    channel.deliver()
    assert "ended" in page.said[1]
    assert other.said == []


class Clock:
    """What the links take for the time."""

    def __init__(self):
        self.now, self.sleep = 0.0, time.sleep

    def monotonic(self):
        return self.now


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("busy", [5, 61, 1000])
def test_a_page_is_not_silent_while_python_is_busy(busy, leaves, monkeypatch):
    """Its messages wait: it is asked again, and has all of its time."""
    clock = Clock()
    monkeypatch.setattr(links, "time", clock)
    host, page, channel = joined()
    t = dlw.from_dlpack(np.arange(3.0), device=host.device)
    if leaves:
        page.post({"leaving": True})
    channel.deliver()

    async def cell():
        reading = asyncio.ensure_future(t.to_host())
        await asyncio.sleep(0)
        for _ in range(6):  # it is asked
            clock.now += 0.5
            host.link._look()
        clock.now += busy  # another task that does not wait
        host.link._look()
        while not reading.done():
            channel.deliver()
            await asyncio.sleep(0)
        return await reading

    assert asyncio.run(cell()).tolist() == [0, 1, 2]
    t.release()


@pytest.mark.parametrize("kind", ["read", "upload"])
def test_a_page_that_slept_gets_at_once_what_was_lost_meanwhile(kind, monkeypatch):
    """For ten minutes, with all messages of both sides. Only the kernel notices."""
    clock = Clock()
    monkeypatch.setattr(links, "time", clock)
    host, page, channel = joined(patience=3600)
    a = np.arange(700_000.0)
    t = dlw.from_dlpack(a, device=host.device)
    if kind == "read":
        channel.deliver()
    link = host.link

    async def cell():
        reading = asyncio.ensure_future(t.to_host())
        await asyncio.sleep(0)
        for _ in range(1200):
            clock.now += 0.5
            link._look()
            channel.queue.clear()
        page.post({"pong": True})  # it is back
        for _ in range(200):
            channel.deliver()
            await asyncio.sleep(0)
        assert reading.done(), "it waits for the next time that messages are sent again"
        return await reading

    assert np.array_equal(asyncio.run(cell()), a)
    t.release()
    tidied(page, host)
    link.orders.acknowledge()
    channel.deliver()
    assert not left_here(link)
    assert not page.tensors


def test_when_messages_are_sent_again_to_a_page_that_slept(monkeypatch):
    """Not after a short sleep; once when it is back; then after 30 s, as at first."""
    clock, sent = Clock(), []
    monkeypatch.setattr(links, "time", clock)
    host, page, channel = joined(patience=3600)
    link = host.link

    def pass_time(seconds):
        for _ in range(2 * seconds):
            clock.now += 0.5
            link._look()
            channel.queue.clear()

    def answer():
        page.post({"pong": True})
        channel.deliver()
        return len(sent)

    async def cell():
        with dlw.from_dlpack(np.arange(9.0), device=host.device) as t:
            reading = asyncio.ensure_future(t.to_host())
            await asyncio.sleep(0)
            with monkeypatch.context() as patched:
                patched.setattr(type(link.orders), "resend", lambda _: sent.append(1))
                channel.queue.clear()
                pass_time(9)
                assert answer() == 0
                pass_time(600)
                while_asleep = len(sent)
                assert answer() == while_asleep + 1
                pass_time(1)
                assert len(sent) == while_asleep + 1
                pass_time(30)
                assert len(sent) == while_asleep + 2
            link.orders.resend()
            while not reading.done():
                channel.deliver()
                await asyncio.sleep(0)
            assert (await reading).tolist() == list(range(9))

    asyncio.run(cell())
    tidied(page, host)


def test_what_is_sent_again_waits_twice_as_long_each_time(monkeypatch):
    """Whatever the page sends meanwhile."""
    clock = Clock()
    monkeypatch.setattr(links, "time", clock)
    host, page, channel = joined()
    link = host.link
    channel.queue.clear()
    t = dlw.empty(3, device=host.device)
    sent = []
    for _ in range(2000):
        clock.now += 1
        host.receive({"dlpack_web": "1", "from": page.own, "got": 0})
        link._look()
        if any("n" in content for _, content, _ in channel.queue):
            sent.append(clock.now)
        channel.queue.clear()
    gaps = np.diff(sent)
    assert len(gaps) >= 4
    assert all(later >= 2 * gap - 2 for gap, later in itertools.pairwise(gaps))
    t.release()
