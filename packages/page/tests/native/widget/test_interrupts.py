# An interrupt at any place of an operation on a page: then no lock is held, nothing reads or
# writes the caller's memory or keeps it, nothing stays in the kernel or the page, and the
# next operation works. Some places; WHOLE=1 takes more.
import asyncio
import gc
import io
import logging
import os
import random
import signal
import sys
import threading
import time
import weakref
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from fake_page import DOUBLE, end_all, finish, joined, left_here, left_in_page
from interrupts import Lines, Places

import dlpack_web as dlw
from dlpack_web_page._page import backend as uploads
from dlpack_web_page._page import link as links
from dlpack_web_page._page.ordered import Ordered
from dlpack_web_page._page.replies import Reply
from dlpack_web_page._page.tensors import Tensors
from dlpack_web_page._wire.frame import LEAST_PIECE

MOST = 60 if os.environ.get("WHOLE") else 8  # places of an operation
A = np.arange(40_000, dtype="f4")  # some pieces
B = np.arange(12, dtype="f4")


# What CPython says of a coroutine that is interrupted before its first step.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(links, "_PIECE", LEAST_PIECE)
    monkeypatch.setattr(links, "_WINDOW", 2 * LEAST_PIECE)
    monkeypatch.setattr(links, "_RESEND_S", 0)


with io.BytesIO() as file:
    np.save(file, A)
    FILE = file.getvalue()


class World:
    """A page, and a tensor that is left alone. Messages arrive on this thread, or on
    another one, so that Python can wait."""

    def __init__(self, on_thread):
        self.on_thread, self.stop = on_thread, threading.Event()
        self.turn = threading.Lock()  # a FakePage is of one thread at a time
        self.thread = threading.Thread(target=self.deliver, daemon=True)
        self.host, self.page, self.channel = joined()
        self.link = self.host.link
        self.device = self.host.device
        self.named = Tensors(self.host)
        if on_thread:
            self.link._thread = -1
            self.thread.start()
        self.other = dlw.from_dlpack(B, device=self.device)
        self.double = dlw.webgpu.Kernel(DOUBLE, "double")
        with dlw.empty(4, device=self.device) as t:
            self.double(t)

    def deliver(self):
        while not self.stop.is_set():
            with self.turn:
                self.channel.deliver()
            time.sleep(0.0001)

    def finish(self, coroutine):
        if self.on_thread:
            return asyncio.run(coroutine)
        return finish(self.channel, coroutine)

    def end(self):
        self.other.release()
        self.stop.set()
        if self.on_thread:
            self.thread.join()

    def settle(self):
        """Until nothing is on its way: what a lossy channel needs."""
        for _ in range(200):
            with self.turn:
                kept = left_in_page(self.page) | left_here(self.link)
                kept["tensors"] = len(self.page.tensors) - 1
                kept["kernels"] = len(self.page.kernels) - 1
                kept = {name: found for name, found in kept.items() if found}
                if not kept:
                    break
                self.channel.deliver()
                self.link._look()
                self.link._tell()
                self.page.wire._sending.resend(float("inf"))
                self.page.orders.resend()
        if self.on_thread:
            self.link._thread = -1
        return kept


def owned(array):
    """A copy, and what says whether it lives."""
    mine = array.copy()
    LIVING.append(weakref.ref(mine))
    return mine


LIVING = []


def upload(world):
    with dlw.from_dlpack(owned(A), device=world.device) as t:
        assert t.shape == A.shape


def upload_small(world):
    """Deliveries, too."""
    with dlw.from_dlpack(B, device=world.device):
        world.channel.deliver()


def write_small(world):
    with dlw.empty(B.shape, device=world.device) as t:
        t.write(owned(B))
        world.channel.deliver()


def read_small(world):
    with dlw.from_dlpack(B, device=world.device) as t:
        out = owned(np.full_like(B, 7))
        assert (world.finish(t.to_host(out)) == B).all()


def upload_strided(world):
    dlw.from_dlpack(owned(A)[::2], device=world.device).release()


def upload_converted(world):
    dlw.from_dlpack(owned(B), device=world.device, dtype="float16").release()


def write(world):
    with dlw.empty(A.shape, device=world.device) as t:
        t.write(owned(A))


def write_part(world):
    with dlw.empty(A.shape, device=world.device) as t, t[1000:30_000] as part:
        part.write(owned(A)[1000:30_000])


def copy(world):
    with dlw.empty(B.shape, device=world.device) as t:
        t.write(world.other)


def read(world):
    with dlw.from_dlpack(A, device=world.device) as t:
        out = owned(np.full_like(A, 7))
        assert (world.finish(t.to_host(out)) == A).all()


def read_many(world):
    with (
        dlw.from_dlpack(A, device=world.device) as t,
        dlw.from_dlpack(B, device=world.device) as u,
    ):
        first, second = world.finish(dlw.to_host(t, u))
        assert (first == A).all()
        assert (second == B).all()


def read_blocking(world):
    with dlw.from_dlpack(A, device=world.device) as t:
        assert (t.numpy() == A).all()


def run(world):
    with dlw.from_dlpack(B, device=world.device) as t:
        world.double(t)
        with dlw.webgpu.batch() as batch:
            world.double(t)
        batch.update(0, {0: t})
        batch.run()
        batch.release()


def kernel(world):
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    with dlw.empty(4, device=world.device) as t:
        double(t)


def give(world):
    with dlw.from_dlpack(B, device=world.device) as t:
        world.named["x"] = t


def wait(world):
    world.finish(world.host.backend().settle(world.device.id))


def open_file(world):
    async def load():
        with await dlw.open(FILE, device=world.device) as t:
            return await t.to_host()

    assert (world.finish(load()) == A).all()


def write_then_change(world):
    """The page has all of it, nothing, or an error: never what the caller wrote later."""
    with dlw.empty(A.shape, device=world.device) as t, t[1000:30_000] as part:
        given = owned(A)[1000:30_000]
        try:
            part.write(given)
        finally:
            given[:] = 77
            with suppress(BufferError):  # it was freed
                found = world.finish(t.to_host())[1000:30_000]
                assert (found == A[1000:30_000]).all() or not found.any()


OPERATIONS = [upload, upload_strided, upload_converted, write, write_part, copy, read]
OPERATIONS += [read_many, run, kernel, give, wait, open_file]


def check(world, at, before):
    """Nothing of an operation that was interrupted at that place is left."""
    asking = threading.Thread(target=world.link.ping, daemon=True)
    asking.start()
    asking.join(20)
    assert not asking.is_alive(), f"{at}: the lock is held"
    assert set(world.named) <= {"x"}
    world.named.clear()
    gc.collect(0)
    if kept := world.settle():
        gc.collect()  # of errors in cycles with their frames
        kept = world.settle()
    assert not kept, f"{at}: {kept}"
    # asyncio.run() that is interrupted at its very end leaves its handler, with its task.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if dlw.live_tensors() != before or any(each() is not None for each in LIVING):
        gc.collect()
    living = [array for array in (each() for each in LIVING) if array is not None]
    LIVING.clear()
    assert dlw.live_tensors() == before, at
    assert not living, f"{at}: it keeps the array"
    found = world.finish(world.other.to_host())
    assert (found == B).all(), at


@pytest.mark.parametrize("way", [Places, Lines], ids=["places", "lines"])
@pytest.mark.parametrize("on_thread", [False, True], ids=["awaits", "waits"])
@pytest.mark.parametrize(
    "operation", [*OPERATIONS, read_blocking], ids=lambda each: each.__name__
)
def test_interrupted_anywhere(operation, on_thread, way, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL + 1, "asyncio")  # its records keep frames
    if operation is read_blocking and not on_thread:
        pytest.skip("Python cannot wait")
    monkeypatch.setattr(uploads, "_SMALL", 1000)
    interrupt(World(on_thread), operation, way, MOST)


@pytest.mark.parametrize(
    ("operation", "file"),
    [
        (read_small, "_tensor/hints.py"),
        (give, "_page/ordered.py"),
        (upload_small, "_wire/sending.py"),
        (write_small, "_page/transfers.py"),
        (read_small, "_wire/receiving.py"),
    ],
)
def test_interrupted_at_each_place_of_a_file(operation, file, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL + 1, "asyncio")
    interrupt(World(False), operation, partial(Places, file=file), 10_000)


class BrokenError(Exception):
    """Of the host's channel."""


class Posts:
    """Raises at a message to the page, before or after it was sent."""

    def __init__(self, at, world, error, is_sent):
        self.at, self.count, self.link = at, 0, world.link
        self.error, self.is_sent, self.post = error, is_sent, world.link._post

    def __enter__(self):
        self.link._post = self.failing
        return self

    def __exit__(self, *exception):
        self.link._post = self.post

    def failing(self, content, buffers):
        if threading.current_thread() is not threading.main_thread():
            self.post(content, buffers)
            return
        self.count += 1
        if self.count != self.at or self.is_sent:
            self.post(content, buffers)
        if self.count == self.at:
            raise self.error


@pytest.mark.parametrize("error", [BrokenError, KeyboardInterrupt])
@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("on_thread", [False, True], ids=["awaits", "waits"])
@pytest.mark.parametrize("operation", [upload, write, write_then_change, read])
def test_a_channel_that_raises_at_any_message(
    operation, on_thread, is_sent, error, monkeypatch, caplog
):
    caplog.set_level(logging.CRITICAL + 1, "asyncio")
    monkeypatch.setattr(uploads, "_SMALL", 1000)
    world = World(on_thread)
    way = partial(Posts, world=world, error=error, is_sent=is_sent)
    interrupt(world, operation, way, 20)


def interrupt(world, operation, way, most):
    try:
        world.settle()
        before = dlw.live_tensors()
        with way(0) as places:
            operation(world)
        check(world, 0, before)
        assert places.count > 0
        step = 1 + places.count // most
        first = random.Random(operation.__name__).randrange(1, step + 1)
        for at in range(first, places.count, step):
            try:
                with way(at) as places:
                    operation(world)
            except (KeyboardInterrupt, BrokenError):
                pass
            else:
                # Some messages are tried again later, without an error.
                is_broken = getattr(places, "error", None) is BrokenError
                assert places.count < at or is_broken, f"{at}: the interrupt was lost"
            sys.last_exc = sys.last_value = sys.last_traceback = None
            check(world, at, before)
        operation(world)
    finally:
        world.end()


@pytest.mark.parametrize("way", [Places, Lines])
def test_the_end_of_a_page_is_completed(way):
    with way(0):  # finds the functions
        pass
    for at in range(1, 1000):
        world, reply, hung_up = World(False), Reply(), []
        link, head = world.link, {"dlpack_web": "1", "from": world.page.own}
        upload(world)
        world.named["x"] = world.other
        link.ask(reply, {"op": "settle"})
        link._hang_up = partial(hung_up.append, 1)
        with suppress(KeyboardInterrupt), way(at) as places:
            world.host.receive(head | {"bye": True})
        link.ping()  # any next step
        if link.device.is_lost():
            assert (reply.done(), hung_up[:1], left_here(link)) == (True, [1], {}), at
        end_all()
        world.end()
        if places.count < at:
            break
    assert at > 50


@pytest.mark.parametrize("way", [Places, Lines])
def test_an_interrupt_leaves_a_message_that_was_recorded_or_none(way):
    """And what it is about is taken from its list with it."""
    for at in range(1, 100):
        sent, items = [], [1, 2, 3]
        orders = Ordered(sent.append)
        orders.send("first")
        with way(0):  # finds the functions
            pass
        try:
            with way(at) as places:
                orders.add({"what": [1, 2]}, items, 2)
                orders.flush()
        except KeyboardInterrupt:
            pass
        recorded = orders._last == 2
        assert orders._sent.keys() == set(range(1, orders._last + 1))
        assert items == ([3] if recorded else [1, 2, 3])
        orders.send("last")
        numbers = [message["n"] for message in sent]
        assert sorted(set(numbers)) == [*range(1, orders._last + 1)]
        if places.count < at:
            break
    assert at > 5
