# What a page may get wrong, and a channel lose.
import asyncio

import numpy as np
import pytest
from fake_page import (
    FACTS,
    LIMITS,
    Channel,
    FakePage,
    joined,
)

import dlpack_web as dlw
from dlpack_web_page._page import host as hosts

HOSTILE = [
    {"hello": 3},
    {"hello": {"webgpu": True}},
    {"hello": {**FACTS, "limits": {**LIMITS, "maxBufferSize": 2**53}}},
    {"hello": {**FACTS, "limits": {**LIMITS, "maxBufferSize": "x"}}},
    {"hello": {**FACTS, "limits": {**LIMITS, "minStorageBufferOffsetAlignment": 0}}},
    {"hello": {**FACTS, "features": [1]}},
    {"hello": {**FACTS, "features": ["x"] * 10_000}},
    {"hello": {**FACTS, "features": ["x" * 10_000]}},
    {"hello": {**FACTS, "limits": LIMITS | {"x" * 10_000: 1}}},
    {"hello": {**FACTS, "limits": LIMITS | {f"{n}": 1 for n in range(10_000)}}},
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_page_that_says_what_cannot_be_is_refused(content):
    channel = Channel()
    host = channel.host = hosts.Host(channel.to_pages)
    page = FakePage(channel)
    page.post(content)
    with pytest.raises(BufferError) as found:
        channel.deliver()
    assert len(str(found.value)) < 300
    assert host.link is None
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
