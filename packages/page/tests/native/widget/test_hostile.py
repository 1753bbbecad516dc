# What a page may get wrong, and a channel lose.
import asyncio
import random
import sys

import numpy as np
import pytest

import dlpack_web as dlw

if sys.platform == "emscripten":
    pytest.skip("the GPU of the page is at hand here", allow_module_level=True)

from fake_page import (
    DOUBLE,
    FACTS,
    LIMITS,
    Channel,
    FakePage,
    end_all,
    joined,
    read,
    tidied,
)

from dlpack_web_page._page import host as hosts
from dlpack_web_page._page import link as links
from dlpack_web_page._page.tensors import Tensors


@pytest.fixture(autouse=True)
def _all_ends():
    yield
    end_all()


HOSTILE = [
    {"hello": 3},
    {"hello": {"webgpu": True}},
    {"hello": {**FACTS, "limits": {**LIMITS, "maxBufferSize": 2**53}}},
    {"hello": {**FACTS, "limits": {**LIMITS, "maxBufferSize": "x"}}},
    {"hello": {**FACTS, "limits": {**LIMITS, "minStorageBufferOffsetAlignment": 0}}},
    {"hello": {**FACTS, "features": [1]}},
]


@pytest.mark.parametrize("content", HOSTILE)
def test_a_page_that_says_what_cannot_be_is_refused(content):
    channel = Channel()
    host = channel.host = hosts.Host(channel.to_pages)
    page = FakePage(channel)
    page.post(content)
    with pytest.raises(BufferError):
        channel.deliver()
    channel.deliver()
    assert page.said[-1]["problem"]
    page.hello()
    channel.deliver()
    assert host.device.type == 15


DAMAGED = [
    ({"got": 2**60}, ()),
    ({"got": -1}, ()),
    ({"got": "0"}, ()),
    ({"got": 0, "n": 2**53}, ()),
    ({"got": 0, "n": 1, "do": 5}, ()),
    ({"got": 0, "n": 1, "do": {"reply": 99}}, ()),
    ({"frame": True}, ()),
    ({"frame": True}, (b"", b"", b"")),
    ({"frame": True}, (b"\xff" * 20,)),
]


@pytest.mark.parametrize(("content", "buffers"), DAMAGED)
def test_damaged_messages_are_refused_and_the_rest_goes_on(content, buffers):
    host, page, channel = joined()
    page.post(content, buffers)
    with pytest.raises(BufferError):
        channel.deliver()
    channel.deliver()
    assert page.said[-1]["problem"]
    assert dlw.empty(3, device=host.device).shape == (3,)


def test_a_page_of_another_version_is_refused():
    host, page, channel = joined()
    channel.to_kernel(page, {"dlpack_web": "2", "from": page.own, "hello": FACTS})
    with pytest.raises(BufferError, match="of version '2', this kernel's of 1"):
        channel.deliver()
    channel.deliver()
    assert "reload the page" in page.said[-1]["problem"]
    assert host.device.type == 15


def test_what_was_not_asked_for_takes_no_memory():
    _, page, channel = joined()
    sent = page.wire.send("r77", np.zeros(10))
    channel.deliver()
    with pytest.raises(BufferError, match="was not asked for"):
        sent.ready.result(1)


def test_a_page_that_sends_another_shape_writes_nothing():
    host, page, channel = joined()
    t = dlw.from_dlpack(np.arange(3.0), device=host.device)
    sent = []
    page.read = lambda op: sent.extend(
        page.wire.send(name, np.ones(3)) for name in op["names"]
    )

    async def cancelled():
        task = asyncio.ensure_future(t.to_host())
        await asyncio.sleep(0)
        channel.deliver()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    with pytest.raises(BufferError, match=r"where uint8\[24\] was asked for"):
        sent[0].ready.result(1)
    t.release()


def test_an_interrupted_upload_leaves_nothing(monkeypatch):
    host, page, channel = joined()
    link = host.backend().link

    def interrupted(future):
        raise KeyboardInterrupt

    monkeypatch.setattr(link, "can_block", lambda: True)
    monkeypatch.setattr(link, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dlw.from_dlpack(np.zeros(3_000_000, "f4"), device=host.device)
    assert not link._wire._sending._queue
    channel.deliver()
    assert not link._wire._sending._remotes
    assert tidied(page, host) == {}
    with dlw.from_dlpack(np.arange(3.0), device=host.device) as t:
        assert read(channel, t).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(60))
def test_losses_repeats_and_reordering_change_nothing(seed, monkeypatch):
    monkeypatch.setattr(links, "_RESEND_S", 0)
    rng = random.Random(seed)
    host, page, channel = joined(rng)
    expected, tensors = {}, {}
    named, given = Tensors(host), {}
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    for number in range(30):
        kind = rng.choice(
            ["new", "new", "empty", "write", "run", "release", "give", "deliver"]
        )
        name = rng.choice([*tensors]) if tensors else None
        if kind == "new":
            expected[number] = np.full(rng.randrange(1, 3000) * 4, number, "f4")
            tensors[number] = dlw.from_dlpack(expected[number], device=host.device)
        elif kind == "empty":
            expected[number] = np.zeros(8, "f4")
            tensors[number] = dlw.empty(8, device=host.device)
        elif kind == "deliver":
            channel.deliver(rng.randrange(10))
        elif name is None:
            continue
        elif kind == "write":
            with tensors[name][:4] as part:
                part.write(np.full(4, -number, "f4"))
            expected[name] = expected[name].copy()
            expected[name][:4] = -number
        elif kind == "give":
            key = rng.choice("abc")
            named[key] = tensors[name]
            given[key] = expected[name].copy()
        elif kind == "run":
            double(tensors[name])
            expected[name] = expected[name] * 2
        else:
            tensors.pop(name).release()
            del expected[name]

    async def all_of_them():
        tasks = [asyncio.ensure_future(t.to_host()) for t in tensors.values()]
        for _ in range(3000):
            open_ = host.backend().link.orders._sent
            if not open_ and all(task.done() for task in tasks):
                break
            channel.deliver()
            await asyncio.sleep(0)
            host.backend().link._look()
            page.wire._sending.resend(float("inf"))
            page.orders.resend()
        return [await task for task in tasks]

    found = asyncio.run(all_of_them())
    for name, array in zip(tensors, found, strict=True):
        assert np.array_equal(array, expected[name]), name
        tensors[name].release()
    assert {key: found.tolist() for key, (_, found) in page.given.items()} == {
        key: array.tolist() for key, array in given.items()
    }
    named.clear()
    channel.rng = None
    assert tidied(page, host) == {}
