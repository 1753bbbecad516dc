# Two ends over a channel that splits, drops, repeats, reorders and breaks: nothing is lost, and
# two writes never mix. WIRE_RUNS=2000 is what test-all runs.
import os
import random

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web_page._wire.frame import LEAST_PIECE
from dlpack_web_page.wire import Wire, joined

RUNS = int(os.environ.get("WIRE_RUNS", "100"))
ROWS = 200


class Side:
    """One end, the frames on their way to the other, and what that must have."""

    def __init__(self, clock, rng):
        self.clock, self.rng = clock, rng
        self.out, self.remotes, self.sent = [], {}, []
        columns = {"a": 300, "b": 3, "c": 0}
        self.expected = {name: np.ones((ROWS, n), "f4") for name, n in columns.items()}
        self.open()

    def open(self):
        self.wire = Wire(
            lambda header, payload: self.out.append(joined(header, payload)),
            on_tensor=self.arrived,
            on_session=self.send_all,
            piece=LEAST_PIECE,
            window=self.rng.choice([0, LEAST_PIECE, 5 * LEAST_PIECE]),
            timeout=5,
            now=lambda: self.clock[0],
        )
        self.send_all()

    def send_all(self):
        """At first, and after another session began, as the error says."""
        assert all(each.done() for each in self.sent)
        for name, array in self.expected.items():
            self.remotes[name] = self.wire.send(name, array.copy())
        self.sent = [remote.ready for remote in self.remotes.values()]

    def write(self):
        name = self.rng.choice(list(self.remotes))
        remote, array = self.remotes[name], self.expected[name]
        start = self.rng.randrange(ROWS + 1)
        stop = self.rng.randrange(start, ROWS + 1)
        array[start:stop] = remote._version + 1
        self.sent.append(remote[start:stop].write(array[start:stop].copy()))

    def arrived(self, received):
        flat = received.tensor.numpy().reshape(-1)
        part = flat[received.begin // 4 : received.end // 4]
        assert (part >= received.version).all()

    def is_done(self):
        return all(each.done() for each in self.sent)


def deliver(rng, source, target, careful):
    """One frame, or not, or twice."""
    if not source.out:
        return
    at = 0 if careful or rng.random() < 0.5 else rng.randrange(len(source.out))
    frame = source.out[at]
    luck = 1.0 if careful else rng.random()
    if luck < 0.1 or luck >= 0.2:
        del source.out[at]
    if luck >= 0.1:
        split = 8 + int.from_bytes(frame[:8], "little")
        apart = [frame[:split], frame[split:]]
        target.wire.receive(*rng.choice([[frame], apart]))


def connect(sides):
    for side in sides:
        side.out.clear()
    for side in sides:
        side.wire.connect()


def run(seed):
    rng, clock = random.Random(seed), [0.0]
    one, other = sides = Side(clock, rng), Side(clock, rng)
    connect(sides)
    for _ in range(rng.randrange(20, 120)):
        source, target = rng.choice([(one, other), (other, one)])
        luck = rng.random()
        clock[0] += 1
        if luck < 0.8:
            deliver(rng, source, target, False)
        elif luck < 0.9:
            source.write()
        elif luck < 0.95:
            source.wire.tick()
        elif luck < 0.98:  # the channel breaks
            connect(sides)
        else:  # another session
            source.wire.close()
            source.open()
            connect(sides)
    for _ in range(2000):
        clock[0] += 1
        for source, target in (one, other), (other, one):
            if source.out:
                deliver(rng, source, target, True)
            else:
                source.wire.tick()
        if one.is_done() and other.is_done():
            break
    for source, target in (one, other), (other, one):
        assert not any(each.exception(timeout=0) for each in source.sent)
        assert target.wire.tensors.keys() == source.expected.keys()
        for name, array in source.expected.items():
            assert np.array_equal(target.wire.tensors[name].numpy(), array)
    for side in sides:
        side.wire.close()


@pytest.mark.parametrize("first", range(0, RUNS, 50))
def test_nothing_is_lost_and_writes_never_mix(first):
    before = dlw.live_tensors()
    for seed in range(first, min(first + 50, RUNS)):
        run(seed)
    assert dlw.live_tensors() == before
