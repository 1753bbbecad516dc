# Random programs on pages that are reloaded, crash or lose their device, over a channel that
# loses, repeats and reorders messages, and brings some of earlier pages; against a model in
# NumPy. WIRE_RUNS=2000 is what test-all runs. A run is the same for a seed: the clock is the
# test's, and so is what the thread of a link does.
import asyncio
import gc
import os
import random
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from fake_page import DOUBLE, Channel, FakePage, end_all, left_here, left_in_page

import dlpack_web as dlw
from dlpack_web._backends import owners
from dlpack_web_page._page import backend as uploads
from dlpack_web_page._page import host as hosts
from dlpack_web_page._page import link as links
from dlpack_web_page._page.tensors import Tensors
from dlpack_web_page._wire.frame import LEAST_PIECE

RUNS = int(os.environ.get("WIRE_RUNS", "100"))
DTYPES = "float32", "float64", "uint8", "int16"
LENGTHS = 0, 1, 3, 100, 5000, 50_000  # the last ones take several pieces
# What happens, and how often.
KINDS = {"new": 2, "empty": 1, "write": 2, "copy": 1, "run": 2, "read": 2, "part": 1}
KINDS |= {"give": 1, "cancel": 1, "release": 1, "interrupt": 1}
KINDS |= {"deliver": 3, "look": 1, "late": 1}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """What the links take for the time; nothing waits to be sent again."""
    found = SimpleNamespace(now=0.0, sleep=lambda _: None)
    found.monotonic = lambda: found.now
    for module in hosts, links:
        monkeypatch.setattr(module, "time", found)
    monkeypatch.setattr(links, "_RESEND_S", 0)
    monkeypatch.setattr(links, "_PIECE", LEAST_PIECE)
    monkeypatch.setattr(links, "_WINDOW", 2 * LEAST_PIECE)
    monkeypatch.setattr(links.Link, "_tidy", lambda self: None)
    return found


class Late(Channel):
    """Knows all that was ever sent."""

    def __init__(self):
        super().__init__()
        self.all = []

    def to_pages(self, content, buffers):
        super().to_pages(content, buffers)
        self.all.append(self.queue[-1])

    def to_kernel(self, page, content, buffers=()):
        super().to_kernel(page, content, buffers)
        self.all.append(self.queue[-1])


class Known:
    """A tensor, and the elements that it must have. array: None after a write that was
    interrupted."""

    def __init__(self, tensor, array, link):
        self.tensor, self.array, self.link = tensor, array, link


class Program:
    def __init__(self, seed, clock):
        self.rng, self.clock = random.Random(seed), clock
        self.values = np.random.default_rng(seed)
        self.channel = Late()
        self.host = self.channel.host = hosts.Host(self.channel.to_pages)
        self.channel.rng = self.rng
        self.named, self.given = Tensors(self.host), {}
        self.tensors, self.reads = [], []
        self.double = dlw.webgpu.Kernel(DOUBLE, "double")
        self.sessions, self.pages = [], {}
        self.open_page()

    # --- the page -------------------------------------------------------------------

    def open_page(self):
        self.page = FakePage(self.channel)
        self.pages[self.page.own] = self.page
        self.page.hello()

    def reload(self):
        """The page says that it goes, or crashes; late messages of it may follow."""
        if self.rng.random() < 0.5:
            self.page.post(self.rng.choice([{"bye": True}, {"lost": "a driver"}]))
        self.end_page()
        self.open_page()

    def end_page(self):
        if self.page in self.channel.pages:
            self.channel.pages.remove(self.page)
        self.page.wire.close()

    def look(self):
        """What timers and threads do, here and in the page."""
        self.clock.now += self.rng.choice([0.1, 1, 2])
        page = self.page
        if any("ended" in each or "closed" in each for each in page.said):
            self.end_page()
            self.open_page()
        elif not page.kernel:
            page.hello()
        else:
            page.wire._sending.resend(float("inf"))
            page.orders.resend()
        if (link := self.link()) is not None:
            with suppress(BufferError):  # the page does not answer
                link._look()
            with link._lock:
                link._let_go()
                link.orders.acknowledge()

    def link(self):
        """The session that is alive; all that ended have a reason."""
        link = self.host.link
        if link is not None and link not in self.sessions:
            self.sessions.append(link)
            self.given = {}
        for each in self.sessions:
            why = each.device.lost
            gone = self.pages[each.peer] not in self.channel.pages
            assert why is None or gone or why == "another page took over"
        return None if link is None or link.device.is_lost() else link

    # --- what a user does -----------------------------------------------------------

    def array(self, dtype, length):
        found = self.values.integers(0, 100, length * self.rng.choice([1, 2]))
        found = found.astype(dtype)
        return found if len(found) == length else found[::2]

    def step(self):
        link = self.link()
        kind = self.rng.choices([*KINDS], [*KINDS.values()])[0]
        if self.rng.random() < 0.02:
            self.reload()
        elif kind == "deliver":
            self.channel.deliver(self.rng.randrange(15))
        elif kind == "look":
            self.look()
        elif kind == "late":
            self.channel.queue.append(self.rng.choice(self.channel.all))
        elif kind == "cancel":
            if self.reads:
                self.reads.pop(self.rng.randrange(len(self.reads)))[0].cancel()
        elif link is not None and kind in ("new", "empty"):
            dtype, length = self.rng.choice(DTYPES), self.rng.choice(LENGTHS)
            if kind == "new":
                array = self.array(dtype, length)
                given = array.copy()
                tensor = dlw.from_dlpack(given, device=self.host.device)
                given[:] = 77  # the upload has a copy
            else:
                array = np.zeros(length, dtype)
                tensor = dlw.empty(length, dtype, device=self.host.device)
            self.tensors.append(Known(tensor, array, link))
        elif self.tensors:
            self.use(kind, self.rng.choice(self.tensors))

    def use(self, kind, known):
        tensor, array = known.tensor, known.array
        if kind == "release":
            self.tensors.remove(known)
            tensor.release()
        elif kind == "read":
            self.read(known, 0, tensor.size)
        elif kind == "part":
            self.read(known, *self.part(tensor.size))
        elif known.link.device.is_lost():
            with pytest.raises(dlw.DeviceLostError):
                tensor.write(np.zeros(tensor.shape, array_dtype(tensor)))
        elif kind == "write":
            self.write(known)
        elif kind == "interrupt":
            self.interrupt(known)
        elif array is None:
            return
        elif kind == "copy":
            self.copy(known)
        elif kind == "run" and array.dtype == "f4" and array.size:
            self.double(tensor)
            known.array = array * 2
        elif kind == "give":
            name = self.rng.choice("abc")
            self.named[name] = tensor
            self.given[name] = array.copy()

    def part(self, size):
        """Whole words of the GPU, as writes need."""
        start = self.rng.randrange(size + 1) // 4 * 4
        return start, self.rng.randrange(start, size + 1) // 4 * 4

    def write(self, known):
        start, stop = self.part(known.tensor.size)
        given = self.array(array_dtype(known.tensor), stop - start)
        with known.tensor[start:stop] as part:
            part.write(given)
        if known.array is not None:
            known.array = known.array.copy()
            known.array[start:stop] = given
        given[:] = 77

    def copy(self, known):
        others = [
            each
            for each in self.tensors
            if each.link is known.link
            and each is not known
            and each.array is not None
            and each.array.dtype == known.array.dtype
        ]
        if not others:
            return
        other = self.rng.choice(others)
        size = self.rng.randrange(min(known.array.size, other.array.size) + 1)
        size = size // 4 * 4
        with known.tensor[:size] as to, other.tensor[:size] as source:
            to.write(source)
        known.array = known.array.copy()
        known.array[:size] = other.array[:size]

    def interrupt(self, known):
        """Ctrl-C, while Python waits until the page has the elements."""
        link = known.link

        def interrupted(future):
            raise KeyboardInterrupt

        link.can_block, link.wait = lambda: True, interrupted
        small, uploads._SMALL = uploads._SMALL, 0
        try:
            if self.rng.random() < 0.5:
                with pytest.raises(KeyboardInterrupt):
                    dlw.from_dlpack(np.ones(30_000), device=self.host.device)
            elif known.tensor.size:
                known.array = None
                given = np.ones(known.tensor.size, array_dtype(known.tensor))
                with pytest.raises(KeyboardInterrupt):
                    known.tensor.write(given)
        finally:
            uploads._SMALL = small
            del link.can_block, link.wait

    def read(self, known, start, stop):
        expected = None if known.array is None else known.array[start:stop].copy()

        async def to_host():
            with known.tensor[start:stop] as part:
                return await part.to_host()

        task = asyncio.ensure_future(to_host())
        self.reads.append((task, expected, known.link))

    # --- the end --------------------------------------------------------------------

    async def settle(self, done):
        """Goes on until it is done."""
        for _ in range(300):
            self.channel.deliver()
            self.look()
            await turns()
            if done():
                return
        kept = f"{left_in_page(self.page)}, {left_here(self.host.link)}"
        pytest.fail(f"it hangs: {kept:.2000}")

    def is_quiet(self):
        """The page and the kernel know each other, and all that was asked for is done."""
        link = self.link()
        joined = link is not None and link.peer == self.page.own
        done = all(task.done() for task, *_ in self.reads)
        return joined and done and not link.orders._sent and not self.page.queue

    async def check(self):
        """All reads give what the tensors had when they were asked for."""
        await self.settle(self.is_quiet)
        for task, expected, link in self.reads:
            error = task.exception()
            if isinstance(error, dlw.DeviceLostError):
                assert link.device.is_lost()
            elif expected is None:
                assert error is None or "was freed" in str(error), error
            else:
                assert error is None, error
                assert np.array_equal(task.result(), expected)
        self.reads.clear()

    async def run(self):
        for _ in range(self.rng.randrange(10, 80)):
            self.step()
            await turns()
        await self.check()
        for known in self.tensors:
            self.read(known, 0, known.tensor.size)
        await turns()
        await self.check()
        found = {name: array for name, (_, array) in self.page.given.items()}
        assert found.keys() == self.given.keys()
        for name, array in self.given.items():
            assert np.array_equal(found[name], array)
        for known in self.tensors:
            known.tensor.release()
        self.named.clear()
        del self.double
        page, link = self.page, self.link()
        await self.settle(lambda: not left_in_page(page) and not left_here(link))
        assert not any("problem" in each for each in page.said)


async def turns():
    """Until each read has asked for its elements, or has them."""
    for _ in range(4):
        await asyncio.sleep(0)


def array_dtype(tensor):
    return np.dtype(str(tensor.dtype))


async def run_all(seeds, clock):
    for seed in seeds:
        program = Program(seed, clock)
        try:
            await program.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            end_all()
            for session in program.sessions:
                owners.pop(session.device.id)


@pytest.mark.parametrize("first", range(0, RUNS, 50))
def test_nothing_is_lost_or_mixed_or_stays(first, clock):
    gc.collect()
    before = dlw.live_tensors()
    asyncio.run(run_all(range(first, min(first + 50, RUNS)), clock))
    gc.collect()
    assert dlw.live_tensors() == before
