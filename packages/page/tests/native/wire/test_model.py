# A wire over a channel that splits, drops, repeats, reorders and breaks, against a
# model: nothing is lost, and two writes never mix. WIRE_RUNS=10000 is what test-all runs.
import os
import random
from contextlib import suppress

import numpy as np
import pytest
from wires import pair

import dlpack_web as dlw
from dlpack_web_page._wire.frame import LEAST_PIECE
from dlpack_web_page.wire import Wire, joined

RUNS = int(os.environ.get("WIRE_RUNS", "100"))
ROWS = 200
LIMIT = 1 << 20


class Side:
    """One end, the frames on their way to the other, and what that must have."""

    def __init__(self, clock, rng):
        self.clock, self.rng = clock, rng
        self.out, self.remotes, self.expected, self.sent = [], {}, {}, []
        self.open()

    def open(self):
        window = self.rng.choice([0, LEAST_PIECE, 5 * LEAST_PIECE])
        self.wire = Wire(
            lambda header, payload: self.out.append(joined(header, payload)),
            on_tensor=self.arrived,
            on_session=self.begin_again,
            limit=LIMIT,
            piece=LEAST_PIECE,
            window=window,
            timeout=5,
            now=lambda: self.clock[0],
        )

    def begin_again(self):
        """The application sends again, as the error says."""
        assert all(each.done() for each in self.sent)
        again, self.remotes, self.expected, self.sent = self.expected, {}, {}, []
        for name, array in again.items():
            self.send(name, array)

    def send(self, name, array):
        self.expected[name] = array.copy()
        remote = self.remotes[name] = self.wire.send(name, array.copy())
        self.sent.append(remote.ready)

    def write(self):
        name = self.rng.choice(list(self.remotes))
        remote, array = self.remotes[name], self.expected[name]
        start = self.rng.randrange(ROWS + 1)
        stop = self.rng.randrange(start, ROWS + 1)
        value = remote._version + 1
        array[start:stop] = value
        self.sent.append(remote[start:stop].write(array[start:stop].copy()))

    def arrived(self, received):
        flat = received.tensor.numpy().reshape(-1)
        part = flat[received.begin // 4 : received.end // 4]
        assert (part >= received.version).all()


def send_first(side):
    for name, columns in ("a", 300), ("b", 3), ("c", 0):
        side.send(name, np.ones((ROWS, columns), "f4"))


def deliver(rng, source, target, careful):
    """One frame, or not, or twice."""
    if not source.out:
        return
    at = 0 if careful or rng.random() < 0.5 else rng.randrange(len(source.out))
    frame = source.out[at]
    luck = 1.0 if careful else rng.random()
    if luck < 0.1 or luck >= 0.2:
        del source.out[at]
    if luck < 0.1:
        return
    if rng.random() < 0.5:
        target.wire.receive(frame)
    else:
        split = 8 + int.from_bytes(frame[:8], "little")
        target.wire.receive(frame[:split], frame[split:])


def run(seed):
    rng = random.Random(seed)
    clock = [0.0]
    one, other = sides = Side(clock, rng), Side(clock, rng)
    for side in sides:
        send_first(side)
        side.wire.connect()
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
            for side in sides:
                side.out.clear()
                side.wire.connect()
        else:  # the other side has a new session
            source.wire.close()
            assert all(each.done() for each in source.sent)
            for side in sides:
                side.out.clear()
            expected, source.remotes, source.expected, source.sent = (
                source.expected,
                {},
                {},
                [],
            )
            source.open()
            for name, array in expected.items():
                source.send(name, array)
            for side in sides:
                side.wire.connect()
    for _ in range(2000):
        clock[0] += 1
        for source, target in (one, other), (other, one):
            if source.out:
                deliver(rng, source, target, True)
            else:
                source.wire.tick()
        if all(each.done() for side in sides for each in side.sent):
            break
    for source, target in (one, other), (other, one):
        assert [each.exception(timeout=0) for each in source.sent] == [None] * len(
            source.sent
        )
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


def test_hostile_frames_raise_are_refused_and_change_no_complete_tensor():
    rng = random.Random(7)
    (one, other), (out, back), carry = pair(limit=4096)
    one.send("x", np.arange(16, dtype="f4"))
    frames = [*out]
    carry()
    before = dlw.live_tensors()
    for _ in range(3000):
        frame = bytearray(frames[0])
        for _ in range(rng.randint(1, 3)):
            frame[rng.randrange(len(frame) - 64)] = rng.choice(b'0123456789"{}[],:\xff')
        with suppress(BufferError):
            other.receive(bytes(frame))
        back.clear()
        held = sum(tensor.nbytes for tensor in other.tensors.values())
        assert held <= 4096
    assert dlw.live_tensors() - before <= 2 * 8192
    one.close()
    other.close()


def test_what_does_not_fit_is_refused_and_freed():
    refused = []
    (one, other), _, carry = pair(limit=100, on_refuse=refused.append)
    remote = one.send("x", np.zeros(26, "f4"))
    fits = one.send("y", np.zeros(25, "f4"))
    carry()
    assert "limit of 100" in str(remote.ready.exception())
    assert "limit of 100" in str(refused[0])
    assert fits.ready.result(timeout=0) is None
    with pytest.raises(BufferError, match="limit of 100"):
        remote.write(np.zeros(26, "f4"))
    assert other.tensors.keys() == {"y"}
    fits.free()
    carry()
    again = one.send("x", np.zeros(25, "f4"))
    carry()
    assert again.ready.done()
    assert other.tensors.keys() == {"x"}
    with pytest.raises(BufferError, match="dtype and number of elements"):
        again.write(np.zeros(25, "f8"))
    one.close()
    other.close()
    assert not other.tensors
    with pytest.raises(BufferError, match="closed"):
        one.send("x", np.zeros(1, "f4"))


def test_at_most_the_window_is_on_its_way():
    (one, other), (out, back), _ = pair(piece=LEAST_PIECE, window=3 * LEAST_PIECE)
    array = np.random.default_rng(3).random((1000, 100))
    remote = one.send("x", array[:, ::-1])
    most = 0
    while out or back:
        most = max(most, len(out))
        if out:
            other.receive(out.pop(0))
        else:
            one.receive(back.pop(0))
    assert most == 3
    assert remote.ready.done()
    assert np.array_equal(other.tensors["x"].numpy(), array[:, ::-1])
    one.close()
    other.close()


def test_a_new_session_ends_what_was_sent():
    sessions = []
    (one, _), (out, _), _ = pair(on_session=lambda: sessions.append(1))
    remote = one.send("x", np.zeros(4))
    out.clear()
    new = Wire(lambda header, payload: one.receive(header, payload))
    new.connect()
    with pytest.raises(BufferError, match="has a new session"):
        remote.ready.result(timeout=0)
    assert sessions == [1]
    with pytest.raises(BufferError, match="has a new session"):
        remote.write(np.zeros(4))


def test_a_channel_that_is_opened_again_gets_what_was_not_acknowledged():
    (one, other), (out, _), carry = pair()
    remote = one.send("x", np.arange(4.0))
    out.clear()
    assert not remote.ready.done()
    one.connect()
    carry()
    assert remote.ready.done()
    assert np.array_equal(other.tensors["x"].numpy(), np.arange(4.0))


def test_what_ended_leaves_room_in_the_window():
    (one, other), (out, _), carry = pair(piece=LEAST_PIECE, window=LEAST_PIECE)
    ended = one.send("x", np.zeros(LEAST_PIECE // 8))
    out.clear()
    ended.free()
    out.clear()
    following = [one.send(f"{i}", np.zeros(LEAST_PIECE // 16)) for i in range(2)]
    assert len(out) == 2  # both fit beside the frame that frees
    carry()
    assert all(each.ready.done() for each in following)
    assert other.tensors.keys() == {"0", "1"}


def test_frames_for_another_session_are_ignored():
    (one, other), (out, _), carry = pair()
    one.send("x", np.zeros(4))
    (frame,) = out
    carry()
    stale = frame.replace(b'"to":"', b'"to":"0000000000000000", "o":"')
    padded = stale[8 : stale.rindex(b"}") + 1]
    assert padded.count(b'"to"') == 1
    other.receive(len(padded).to_bytes(8, "little") + padded, bytes(32))
    assert other.tensors.keys() == {"x"}
    renamed = padded.replace(b'"id":"1"', b'"id":"9"')
    other.receive(len(renamed).to_bytes(8, "little") + renamed, bytes(32))
    assert not out
    assert other._receiving._ids.keys() == {1}
