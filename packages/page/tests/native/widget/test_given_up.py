# What was given up is over: nothing writes into the caller's memory or keeps it, and the
# page and the kernel keep nothing. What a page sends that it must not changes no array.
import asyncio
import gc
import random
import threading
import warnings
import weakref

import numpy as np
import pytest
from fake_page import (
    DOUBLE,
    FACTS,
    FakePage,
    finish,
    joined,
    left_here,
    read,
)

import dlpack_web as dlw
from dlpack_web._backends import owners
from dlpack_web_page._page import host as hosts
from dlpack_web_page._page import link as links
from dlpack_web_page._page.ordered import Ordered
from dlpack_web_page._wire.frame import LEAST_PIECE, Piece, encode

A = np.arange(60_000, dtype="f4")  # some pieces


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(links, "_PIECE", LEAST_PIECE)
    monkeypatch.setattr(links, "_WINDOW", 2 * LEAST_PIECE)


def deliver_all(page, channel, link):
    """All that is under way, also what was lost."""
    for _ in range(100):
        channel.deliver()
        page.wire._sending.resend(float("inf"))
        page.orders.resend()
        link._tell()
        if not link.device.is_lost():
            link._look()


# --- reads -----------------------------------------------------------------------------------


async def cancelled(task, link):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def too_late(task, link):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0.01)


async def no_answer(task, link):
    link._pinged, link._patience = link._heard - 100, 0
    link._looked = float("inf")
    with pytest.raises(BufferError, match="has not answered"):
        await task


async def lost(task, link):
    link.lose("a test")
    with pytest.raises(dlw.DeviceLostError):
        await task


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("give_up", [cancelled, too_late, no_answer, lost])
def test_nothing_writes_into_an_array_whose_reading_was_given_up(give_up, many, seed):
    """After some of its elements have arrived, in any order."""
    rng = random.Random(seed)
    host, page, channel = joined()
    link = host.link
    t = dlw.from_dlpack(A, device=host.device)
    channel.deliver()
    outs = [np.full_like(A, 7) for _ in range(3 if many else 1)]
    gone = [weakref.ref(out) for out in outs]

    async def some():
        each = [t.to_host(out) for out in outs]
        task = asyncio.ensure_future(asyncio.gather(*each) if many else each[0])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        channel.deliver(1)
        for _ in range(rng.randrange(12)):
            channel.deliver(1)
        rng.shuffle(channel.queue)
        await give_up(task, link)

    asyncio.run(some())
    before = [out.copy() for out in outs]
    assert all((out == 7).all() or (out == A).all() for out in outs)
    assert not link._landings
    assert not link._replies._open
    assert not link._wire._receiving._ids
    deliver_all(page, channel, link)
    for out, then in zip(outs, before, strict=True):
        assert np.array_equal(out, then)
    outs.clear()
    del out
    gc.collect()
    assert [each() for each in gone] == [None] * len(gone)
    if give_up is not lost:
        assert np.array_equal(read(channel, t), A)
        deliver_all(page, channel, link)
        assert not left_here(link)
    t.release()


def test_a_reading_that_nobody_finishes_is_over():
    """Its coroutine is collected."""
    host, _, channel = joined()
    t = dlw.from_dlpack(A, device=host.device)
    out = np.full_like(A, 7)
    reading = t.to_host(out)

    async def begin():
        reading.send(None)

    asyncio.run(begin())
    channel.deliver(4)
    reading.close()
    assert not host.link._landings
    before = out.copy()
    channel.deliver()
    assert np.array_equal(out, before)
    t.release()


@pytest.mark.parametrize("name", ["KernelError", "DeviceError", "DLPackError"])
def test_an_error_of_the_gpu_that_nobody_waits_for_is_a_warning(name):
    """The page counts it as reported when it answers."""
    page = Hostile()

    async def given_up():
        task = await page.ask()
        await cancelled(task, page.host.link)

    asyncio.run(given_up())
    page.page.reply(page.op, error={"name": name, "message": "it is wrong", "site": 1})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        page.channel.deliver()
    expected = [] if name == "DLPackError" else ["it is wrong"]
    assert [str(each.message) for each in told] == expected
    page.tensor.release()


# --- pages that do what they must not -------------------------------------------------------


class Hostile:
    """Reads of one array, where the test sends the frames."""

    def __init__(self, array=A):
        self.host, self.page, self.channel = joined()
        self.array = array
        self.tensor = dlw.from_dlpack(array, device=self.host.device)
        self.asked = []
        self.channel.deliver()
        self.page.read = self.asked.append
        self.peer = self.page.wire

    async def ask(self, out=None):
        task = asyncio.ensure_future(self.tensor.to_host(out))
        while not self.asked:
            await asyncio.sleep(0)
            self.channel.deliver()
        (self.op,) = self.asked
        (self.name,) = self.op["names"]
        return task

    def piece(self, first, last, value, id=1, version=1, begin=0, end=None, name=None):
        size = self.array.nbytes
        end = size if end is None else end
        facts = dlw.DType("uint8"), (size,), id, version, begin, end, first, last
        piece = Piece(self.name if name is None else name, *facts)
        header = encode(piece, self.peer._own, self.host.link._wire._own)
        payload = bytes([value]) * (last - first)
        self.host.receive(
            {"dlpack_web": "1", "from": self.page.own, "frame": True}, [header, payload]
        )

    def reply(self, **what):
        self.page.reply(self.op, **what)
        self.channel.deliver()


B = np.zeros(64, "u1")


def test_an_answer_without_elements_gives_no_array():
    """Not all of them, or none: an error, and never memory that nothing has written."""
    for sent in 0, 8, 63:
        world = Hostile(B)

        async def ask(world=world, sent=sent):
            task = await world.ask()
            if sent:
                world.piece(0, sent, 5)
            world.reply(value=None)
            with pytest.raises(BufferError, match="answered before it had sent all"):
                await task

        asyncio.run(ask())
        assert not left_here(world.host.link)
        world.tensor.release()


def test_writes_of_parts_are_no_elements_of_the_rest():
    world = Hostile(B)

    async def ask():
        task = await world.ask()
        world.piece(0, 8, 5, version=1, end=8)
        world.piece(56, 64, 5, version=2, begin=56)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
        world.piece(0, 64, 6, version=3)
        return await task

    assert asyncio.run(ask()).tolist() == [6] * 64
    world.tensor.release()


def test_a_name_under_two_ids_writes_nothing_after_the_array_is_there():
    world = Hostile(B)
    out = np.full_like(B, 7)

    async def ask():
        task = await world.ask(out)
        world.piece(0, 8, 1, id=1)
        world.piece(0, 8, 2, id=2)  # refused
        world.piece(8, 64, 1, id=1)
        await task

    asyncio.run(ask())
    assert out.tolist() == [1] * 64
    refused = [c for c in world.channel.queue if b"two ids" in b"".join(c[2])]
    assert refused
    for id in 1, 2, 3:
        for version in 1, 2:
            world.piece(8, 64, 3, id=id, version=version)
            world.piece(0, 64, 4, id=id, version=version)
    assert out.tolist() == [1] * 64
    world.reply(value=None)
    world.reply(error={"message": "too late"})
    assert out.tolist() == [1] * 64
    world.channel.queue.clear()
    world.tensor.release()


@pytest.mark.parametrize("seed", range(40))
def test_random_frames_of_a_page_write_only_while_they_are_asked_for(seed):
    rng = random.Random(seed)
    world = Hostile(B)
    out = np.full_like(B, 7)

    def random_frame():
        begin, first, last, end = sorted(rng.randrange(65) for _ in range(4))
        if first == last:
            begin = end = first
        id, version = rng.randrange(1, 4), rng.randrange(1, 5)
        world.piece(first, last, 1, id, version, begin, end)

    async def ask():
        task = await world.ask(out)
        for _ in range(rng.randrange(20)):
            random_frame()
        if rng.random() < 0.3:
            world.reply(value=None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task

    task = asyncio.run(ask())
    if not task.cancelled() and task.exception() is None:
        assert out.tolist() == [1] * 64
    before = out.copy()
    for _ in range(40):
        random_frame()
    assert np.array_equal(out, before)
    assert not world.host.link._wire._receiving._ids
    world.channel.queue.clear()
    world.tensor.release()


def test_what_raises_is_not_done_later():
    """A caller that tries again has it once."""
    host, _, channel = joined()
    link, post = host.link, host.link._post
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    t = dlw.from_dlpack(np.ones(4, "f4"), device=host.device)
    double(t)

    def failing(content, buffers):
        raise OSError("full")

    link._post = failing
    with pytest.raises(OSError, match="full"):
        double(t)
    with dlw.webgpu.batch() as batch:
        double(t)
    with pytest.raises(OSError, match="full"):
        batch.run()
    link._post = post
    batch.run()
    assert read(channel, t).tolist() == [4] * 4
    batch.release()
    t.release()


# --- what a page can make the kernel keep ------------------------------------------------------


def test_early_messages_are_few_characters():
    got = []
    orders = Ordered(lambda _: None)
    large = "x" * (1 << 20)
    refused = 0
    for number in range(2, 100):
        try:
            got.extend(orders.receive({"got": 0, "n": number, "do": large}))
        except BufferError:
            refused += 1
    assert refused == 98 - len(orders._early)
    assert sum(len(each) for each in orders._early.values()) <= 4 << 20
    for number in range(1, 100):  # as the page sends all again
        got.extend(orders.receive({"got": 0, "n": number, "do": large}))
    assert got == [large] * 99
    assert not orders._early


@pytest.mark.parametrize("body", [[[]] * 3, {"a": [1, 2.5, None]}, "\ud800", 10**1000])
def test_early_messages_of_any_form_arrive(body):
    orders = Ordered(lambda _: None)
    assert [*orders.receive({"got": 0, "n": 2, "do": body})] == []
    assert [*orders.receive({"got": 0, "n": 1, "do": 1})] == [1, body]


def test_a_nest_that_is_too_deep_is_too_large():
    nest = []
    for _ in range(100_000):
        nest = [nest]
    orders = Ordered(lambda _: None)
    with pytest.raises(BufferError):
        orders.receive({"got": 0, "n": 2, "do": nest})
    assert [*orders.receive({"got": 0, "n": 1, "do": nest})] == [nest]
    while nest:  # CPython's own end of it is recursive
        nest = nest.pop()


# --- locks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["post", "release", "warning", "done"])
def test_other_code_may_use_the_page_within_an_operation(where):
    """A finalizer, the host, a user's function for warnings: also while another one of this
    thread is under way, whose lock they would wait for."""
    host, _, channel = joined()
    link, post = host.link, host.link._post
    made = []

    def use():
        if len(made) < 3:
            made.append(
                dlw.from_dlpack(np.full(4, len(made), "f4"), device=host.device)
            )

    def posting(content, buffers):
        post(content, buffers)
        use()

    class Owner:
        def __init__(self, array):
            self.array = array

        def __array_interface__(self):
            raise AttributeError

        def __buffer__(self, flags):
            return memoryview(self.array).__buffer__(flags)

        def __release_buffer__(self, view):
            use()

    def work():
        if where == "post":
            link._post = posting
        t = dlw.from_dlpack(dlw.from_buffer(Owner(A)), device=host.device)
        if where == "warning":
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = lambda *_: use()
                page.orders.send({"fault": "a fault"})
                channel.deliver()
        channel.deliver()
        t.release()
        use()

    page = channel.pages[0]
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits for itself"
    link._post = post
    assert made
    for value, tensor in enumerate(made):
        assert read(channel, tensor).tolist() == [value] * 4
        tensor.release()


def test_the_rest_of_the_messages_is_taken_when_one_raises():
    host, page, channel = joined()
    t = dlw.from_dlpack(np.ones(4, "f4"), device=host.device)
    channel.deliver()
    bodies = [{"fault": "one"}, {"fault": "two"}, 5, {"reply": 99}, {"fault": "three"}]
    heard = []

    async def ask():
        task = asyncio.ensure_future(host.backend().settle(0))
        await asyncio.sleep(0)
        page.queue.clear()
        channel.queue.clear()
        base = page.orders._last
        bodies.append({"reply": host.link._replies._last, "value": None})
        for number, body in [*enumerate(bodies, base + 1)][::-1]:
            page.post({"got": 0, "n": number, "do": body})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            while channel.queue:
                try:
                    channel.deliver(1)
                except Exception as error:  # noqa: BLE001 - any of them
                    heard.append(error)
        await asyncio.wait_for(task, 20)

    asyncio.run(ask())
    assert [str(each) for each in heard] == ["one"]
    assert not host.link.orders._early
    page.orders._last += len(bodies)
    host.link.orders.resend()
    assert finish(channel, t.to_host()).tolist() == [1] * 4
    t.release()


def test_pages_that_come_and_go_are_not_kept():
    """But the backend of one whose tensors are still there, which explains that."""
    host, _, channel = joined()
    t = dlw.empty(3, device=host.device)
    record = host.link.device
    before = {number for number in owners if number <= record.id}
    for _ in range(300):
        channel.pages[-1].post({"bye": True})
        FakePage(channel).hello()
        channel.deliver()
        channel.pages[:] = channel.pages[-1:]
    assert len(owners.keys() - before) <= hosts._MOST_GONE + 1
    assert record.id in owners
    with pytest.raises(dlw.DeviceLostError, match="closed or reloaded"):
        read(channel, t)
    t.release()
    with dlw.from_dlpack(np.arange(3.0), device=host.device) as u:
        assert read(channel, u).tolist() == [0, 1, 2]


def test_pages_that_wait_are_few():
    host, page, channel = joined()
    for number in range(1000):
        page.post({"from": f"{number:016x}", "hello": FACTS})
    channel.deliver()
    assert len(host._others) <= hosts._MOST_OTHERS
    assert host.link.peer == page.own
