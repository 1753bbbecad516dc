# The sending half against a model: what is on its way, what is sent again and when, and what
# ends. The other side is a list of frames.
import os
import random
from types import SimpleNamespace

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web_page._wire import sending
from dlpack_web_page._wire.frame import LEAST_PIECE, Ack, Free, Hello, Piece, Refuse
from dlpack_web_page._wire.sending import Sending

RUNS = int(os.environ.get("WIRE_RUNS", "100"))
# Fewer of both, so that random runs reach them.
FLYING, VERSIONS = 6, 4


class Model:
    """A sending half, what it has sent, and what it must send."""

    def __init__(self, rng, monkeypatch):
        monkeypatch.setattr(sending, "_MOST_FLYING", FLYING)
        monkeypatch.setattr(sending, "MOST_VERSIONS", VERSIONS)
        self.rng, self.now, self.credit = rng, 100.0, None
        self.piece = rng.choice([LEAST_PIECE, LEAST_PIECE + 100, 2 * LEAST_PIECE])
        self.sending = Sending(self.piece, self.post, lambda: self.now)
        self.remotes, self.names = {}, {}
        self.writes = {}  # by id and version, in order
        self.flights = {}  # by what identifies it
        self.again = None  # what may be sent again now

    # --- what it sends ----------------------------------------------------------------

    def post(self, body, payload):
        assert self.credit is not None, "sent to nobody"
        key = self.key(body)
        if key in self.flights:
            assert self.again is not None, f"sent again: {body}"
            assert key in self.again, f"sent again too early: {body}"
            self.again.discard(key)
        elif isinstance(body, Free):
            assert body.id not in self.remotes
            self.flights[key] = SimpleNamespace(body=body, at=self.now, again=0)
        else:
            self.check_new(body)
            self.flights[key] = SimpleNamespace(body=body, at=self.now, again=0)
        self.flights[key].at = self.now
        if isinstance(body, Piece):
            write = self.writes[body.id, body.version]
            part = write.bytes[body.first - body.begin : body.last - body.begin]
            assert bytes(payload) == part
        else:
            assert not payload

    def key(self, body):
        first = body.first if isinstance(body, Piece) else 0
        return body.id, body.version, first

    def check_new(self, body):
        write = self.writes[body.id, body.version]
        assert next(each for each in self.writes.values() if not each.sent) is write
        remote = write.remote
        facts = remote.name, remote.dtype, remote.shape, write.begin, write.end
        assert (body.name, body.dtype, body.shape, body.begin, body.end) == facts
        assert body.first == write.next
        assert body.last == self.next_end(write)
        assert self.has_room(write)
        write.next = body.last
        write.flying.add(body.first)
        write.sent = body.last == write.end

    def next_end(self, write):
        size = min(self.piece, self.credit.piece) // 64 * 64
        return min(write.end, (write.next // size + 1) * size)

    def has_room(self, write):
        oldest = min(
            each.version for each in self.writes.values() if each.remote is write.remote
        )
        if write.version >= oldest + VERSIONS:
            return False
        bodies = [flight.body for flight in self.flights.values()]
        flying = sum(b.last - b.first for b in bodies if isinstance(b, Piece))
        fits = flying + self.next_end(write) - write.next <= self.credit.window
        return not bodies or (fits and len(bodies) < FLYING)

    def check(self):
        """Nothing waits that could be sent; futures are done as the model says."""
        waiting = [each for each in self.writes.values() if not each.sent]
        if waiting and self.credit is not None:
            assert not self.has_room(waiting[0]), "it does not send"
        assert self.sending._flights.keys() == self.flights.keys()
        assert not any(write.future.done() for write in self.writes.values())
        flying = [f.body for f in self.flights.values() if isinstance(f.body, Piece)]
        assert self.sending._bytes == sum(body.last - body.first for body in flying)
        assert self.sending._remotes.keys() == self.remotes.keys()
        named = {}
        for remote in self.remotes.values():
            named.setdefault(remote.name, []).append(remote)
        assert self.sending._named == named

    # --- what happens -----------------------------------------------------------------

    def open(self):
        name = self.rng.choice("ab")
        size = self.rng.choice([0, 1, 40_000, 100_000, 300_000])
        self.begin(len(self.remotes), name, (size,), None, 0)

    def write(self):
        if self.remotes:
            remote = self.rng.choice([*self.remotes.values()])
            start = self.rng.randrange(remote.shape[0] + 1)
            stop = self.rng.randrange(start, remote.shape[0] + 1)
            self.begin(remote._id, remote.name, (stop - start,), remote, start)

    def begin(self, id, name, shape, remote, start):
        array = np.random.default_rng(self.rng.randrange(2**32)).integers(
            0, 256, (shape[0], self.rng.choice([1, 2])), "u1"
        )[:, 0]
        id = self.sending._ids + 1 if remote is None else id
        version = 1 if remote is None else remote._version + 1
        write = SimpleNamespace(
            begin=start,
            end=start + len(array),
            next=start,
            version=version,
            bytes=array.tobytes(),
            sent=False,
            flying=set(),
            remote=remote or SimpleNamespace(name=name, dtype="uint8", shape=shape),
        )
        self.writes[id, version] = write
        if remote is None:
            made = self.sending.open(name, array)
            for each in self.writes.values():
                if each.remote is write.remote:
                    each.remote = made
            self.remotes[made._id] = made
            write.future = made.ready
        else:
            write.future = remote[start : start + len(array)].write(array)

    def acknowledge(self):
        if not self.flights:
            return
        key = self.rng.choice([*self.flights])
        body = self.flights[key].body
        first, last = (body.first, body.last) if isinstance(body, Piece) else (0, 0)
        right = Ack(body.id, body.version, first, last)
        wrong = self.rng.choice(["id", "version", "first", "last", None, None, None])
        if wrong is not None:
            facts = {name: getattr(right, name) for name in right.__slots__}
            self.sending.acknowledge(Ack(**(facts | {wrong: facts[wrong] + 1000})))
            return
        del self.flights[key]
        if isinstance(body, Free):
            self.sending.acknowledge(right)
            return
        write = self.writes[body.id, body.version]
        write.flying.discard(first)
        is_done = write.sent and not write.flying
        if is_done:
            del self.writes[body.id, body.version]
        replaced = []
        if is_done and write.version == 1:
            earlier = [
                each
                for each in self.remotes.values()
                if each.name == write.remote.name and each._id < body.id
            ]
            replaced = [self.expect_end(each) for each in earlier]
        self.sending.acknowledge(right)
        assert write.future.done() == is_done
        if is_done:
            assert write.future.exception() is None
        for futures in replaced:
            for each in futures:
                assert "sent again" in str(each.exception())

    def expect_end(self, remote):
        """A tensor ends: what was to be sent of it is gone."""
        del self.remotes[remote._id]
        ended = [key for key, w in self.writes.items() if w.remote is remote]
        futures = [self.writes.pop(key).future for key in ended]
        for key in [*self.flights]:
            if key[0] == remote._id:
                del self.flights[key]
        if self.credit is None:
            version = remote._version + 1
            body = Free(remote._id, version)
            self.flights[remote._id, version, 0] = SimpleNamespace(
                body=body, at=-np.inf, again=0
            )
        return futures

    def free(self):
        if self.remotes:
            remote = self.rng.choice([*self.remotes.values()])
            futures = self.expect_end(remote)
            remote.free()
            assert all("was freed" in str(each.exception()) for each in futures)
            for wrong in lambda: remote.write(b""), lambda: remote[0:0].write(b""):
                with pytest.raises(BufferError, match="was freed"):
                    wrong()
            remote.free()  # again: nothing

    def refuse(self):
        if not self.remotes:
            return
        remote = self.rng.choice([*self.remotes.values()])
        mine = [w.version for w in self.writes.values() if w.remote is remote]
        version = self.rng.choice([*mine, remote._version + 1, 1])
        futures = self.expect_end(remote) if version in mine else []
        self.sending.refused(Refuse(remote._id, version, "no room"))
        self.sending.refused(Refuse(remote._id + 1000, version, "no room"))
        assert all("other side: no room" in str(each.exception()) for each in futures)

    def resend(self):
        timeout = self.rng.choice([1, 5])
        self.again = set()
        for key, flight in self.flights.items():
            # Each time it waits twice as long, counted from the timeout of that time.
            if flight.at + getattr(flight, "more", 0) <= self.now - timeout:
                self.again.add(key)
        due = set(self.again) if self.credit is not None else set()
        if self.credit is None:
            self.again = set()
        self.sending.resend(self.now - timeout)
        assert not self.again
        for key in due:
            flight = self.flights[key]
            flight.again += 1
            flight.more = timeout * (2**flight.again - 1)
        self.again = None

    def connect(self):
        if self.rng.random() < 0.3:
            self.credit = None
            self.sending.disconnect()
            for flight in self.flights.values():
                flight.again = 0
            return
        window = self.rng.choice([0, 1, LEAST_PIECE, 3 * LEAST_PIECE, 2**40])
        self.credit = Hello(window, self.rng.choice([LEAST_PIECE, 1 << 20]))
        self.again = set(self.flights)
        self.sending.connect(self.credit)
        assert not self.again
        self.again = None
        for flight in self.flights.values():
            flight.more = 0

    def reset(self):
        futures = [write.future for write in self.writes.values()]
        remotes = [*self.remotes.values()]
        self.writes, self.remotes, self.flights, self.credit = {}, {}, {}, None
        self.sending.reset(BufferError("it is gone"))
        assert all("it is gone" in str(each.exception()) for each in futures)
        for remote in remotes:
            with pytest.raises(BufferError, match="it is gone"):
                remote.write(b"")


HAPPENS = {"open": 3, "write": 6, "acknowledge": 20, "free": 1, "refuse": 1}
HAPPENS |= {"resend": 4, "connect": 2, "reset": 0.2}


@pytest.mark.parametrize("first", range(0, RUNS, 50))
def test_what_is_sent_is_what_a_model_sends(first, monkeypatch):
    before = dlw.live_tensors()
    for seed in range(first, first + 50):
        model = Model(random.Random(seed), monkeypatch)
        for _ in range(120):
            model.now += model.rng.choice([0, 1, 3])
            (kind,) = model.rng.choices([*HAPPENS], [*HAPPENS.values()])
            getattr(model, kind)()
            model.check()
        model.reset()
        model.check()
        assert dlw.live_tensors() == before, seed


def test_each_time_it_is_sent_again_it_waits_twice_as_long():
    now, posts = 0.0, []
    half = Sending(LEAST_PIECE, lambda body, _: posts.append(now), lambda: now)
    half.connect(Hello(2**20, LEAST_PIECE))
    half.open("x", np.zeros(4))
    while now < 6000:
        now += 1
        half.resend(now - 2)
    assert [*np.diff(posts[:12])] == [2 * 2**n for n in range(11)]
    assert np.diff(posts)[11:].max(initial=2048) == 2048
    half.disconnect()
    half.connect(Hello(2**20, LEAST_PIECE))  # another channel: it begins again
    half.resend(now)
    assert posts[-1] == now
    half.reset(BufferError("the end"))


@pytest.mark.parametrize("frames", [0, 1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_a_failing_channel_was_given_is_over(frames, error):
    """After an exception nothing keeps the caller's memory, and nothing of it is sent."""
    before, posts, broken = dlw.live_tensors(), [], [frames]

    def post(body, payload):
        posts.append(body)
        if len(posts) - 1 in broken:
            raise error("of the channel")

    half = Sending(LEAST_PIECE, post, lambda: 0)
    half.connect(Hello(2**20, LEAST_PIECE))
    with pytest.raises(error, match="of the channel"):
        half.open("x", np.zeros(LEAST_PIECE))
    assert dlw.live_tensors() == before
    assert isinstance(posts[-1], Free)
    broken.clear()
    posts.clear()
    half.connect(Hello(2**20, LEAST_PIECE))
    assert [type(body) for body in posts] == [Free]
    remote = half.open("x", np.zeros(4))
    broken.append(len(posts))
    with pytest.raises(error, match="of the channel"):
        remote.write(np.ones(4))
    with pytest.raises(BufferError, match="interrupted"):
        remote.write(np.ones(4))
    assert "interrupted" in str(remote.ready.exception())
    assert dlw.live_tensors() == before


def test_what_cannot_be_sent_leaves_nothing():
    before = dlw.live_tensors()
    half = Sending(LEAST_PIECE, lambda *_: None, lambda: 0)
    for name, given in [("x", dlw.empty(3, "int4")), ("x", dlw.empty(3, "float32x4"))]:
        with given, pytest.raises(BufferError, match="safetensors has no"):
            half.open(name, given)
    for name in "__metadata__", "\ud800", "x" * 1001, 5:
        with pytest.raises(TypeError, match="a tensor's name is a str"):
            half.open(name, np.zeros(3))
    remote = half.open("x" * 1000, np.zeros((4, 3)))
    for wrong in np.zeros((4, 3), "f4"), np.zeros(11), np.zeros(13):
        with pytest.raises(BufferError, match="dtype and number"):
            remote.write(wrong)
    for wrong in 3, slice(0, 3, 2), slice(3, 0, -1), "x":
        with pytest.raises(TypeError, match="a part is a slice"):
            remote[wrong]
    for rows, begin, end in [(slice(1, 3), 24, 72), (slice(3, 1), 24, 24)]:
        remote[rows].write(np.zeros((end - begin) // 8))
        write = half._queue[-1]
        assert (write.begin, write.end) == (begin, end)
    remote[-1:].write(np.zeros(3))
    assert (half._queue[-1].begin, half._queue[-1].end) == (72, 96)
    half.reset(BufferError("the end"))
    assert dlw.live_tensors() == before
