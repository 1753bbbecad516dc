# Sessions, and names that are sent again: which frames an end answers and which it ignores,
# against a model of WIRE.md.
import random
from collections import deque
from math import inf

import numpy as np
import pytest
from wires import pair

import dlpack_web as dlw
from dlpack_web._layout.dtype import parse_dtype
from dlpack_web_page._wire.frame import (
    LEAST_PIECE,
    Ack,
    Free,
    Hello,
    Piece,
    Refuse,
    decode,
    encode,
)
from dlpack_web_page.wire import Wire

BYTE = parse_dtype("uint8")
HELLO = Hello(2**20, LEAST_PIECE)


def piece_of(name, id=1, version=1):
    return Piece(name, BYTE, (4,), id, version, 0, 4, 0, 4)


class Session:
    """A Wire whose other sides are made up."""

    def __init__(self, **options):
        self.posts, self.news = [], []
        self.wire = Wire(
            lambda header, payload: self.posts.append(decode(header, payload)),
            on_session=lambda: self.news.append("session"),
            on_tensor=lambda received: self.news.append(received.name),
            on_free=lambda name: self.news.append(f"{name} freed"),
            **options,
        )
        self.own = self.wire._own

    def give(self, body, sender, to=None):
        header = encode(body, sender, self.own if to is None else to)
        payload = bytes(range(4)) if isinstance(body, Piece) else b""
        self.wire.receive(header + payload)

    def told(self):
        """What it sent and reported since the last time."""
        posts, self.posts = self.posts, []
        news, self.news = self.news, []
        assert all(frame.from_ == self.own for frame in posts)
        return [(frame.body, frame.to) for frame in posts], news


@pytest.mark.parametrize("seed", range(60))
def test_what_is_answered_is_what_a_model_answers(seed):
    rng = random.Random(seed)
    end = Session()
    sessions = [f"{n:016x}" for n in range(rng.choice([2, 3, 25]))]
    peer, connected, past = "", False, deque(maxlen=16)
    there = flying = None  # what it has of the peer; what it sent
    for step in range(150):
        sender = rng.choice([*sessions[-3:], rng.choice(sessions), end.own])
        to = rng.choice([end.own, end.own, end.own, "", "f" * 16])
        kind = rng.choice(["hello", "piece", "ack", "free", "connect", "send"])
        posts, news = [], []
        ignored = sender == end.own or sender in past
        if kind == "connect":
            connected = False
            posts = [(end.wire._hello, "")]
            end.wire.connect()
        elif kind == "send":
            if flying is None:
                end.wire.send(f"mine{step}", np.zeros(1, "u1"))
                flying = end.wire._sending._ids
                posts = [("mine", peer)] if connected else []
        else:
            if kind == "hello" and not ignored:
                again = sender == peer and connected
                if peer not in ("", sender):
                    past.append(peer)
                    news.append("session")
                    there = flying = None
                peer, connected = sender, True
                posts += [(end.wire._hello, peer)] if to != end.own else []
                if flying and not (again and to == end.own):
                    posts.append(("mine", peer))
            elif not ignored and to == end.own and not connected:
                posts = [(end.wire._hello, "")]
            elif not ignored and to == end.own and sender == peer:
                if kind == "piece":
                    posts = [(Ack(step, 1, 0, 4), peer)]
                    there, news = step, ["theirs"]
                elif kind == "free":
                    posts = [(Ack(there or 999, 9, 0, 0), peer)]
                    news = ["theirs freed"] if there else []
                    there = None
                else:
                    flying = None
            body = {
                "hello": HELLO,
                "piece": piece_of("theirs", step),
                "free": Free(end.wire._receiving._latest.get("theirs", 999), 9),
                "ack": Ack(end.wire._sending._ids, 1, 0, 1),
            }[kind]
            end.give(body, sender, to)
        sent, heard = end.told()
        sent = [("mine" if isinstance(b, Piece) else b, to) for b, to in sent]
        assert (sent, heard) == (posts, news), (step, kind)
        assert [*end.wire.tensors] == (["theirs"] if there else [])
        assert bool(end.wire._sending._flights or end.wire._sending._queue) == bool(
            flying
        )
    end.wire.close()
    for use in end.wire.connect, lambda: end.wire.receive(b""):
        with pytest.raises(BufferError, match="closed"):
            use()
    end.wire.tick()
    end.wire.close()
    assert end.told() == ([], [])


def test_sixteen_sessions_that_ended_are_remembered():
    end = Session()
    sessions = [f"{n:016x}" for n in range(19)]
    for session in sessions:
        end.give(HELLO, session)
    end.told()
    for session in sessions[2:18]:
        end.give(HELLO, session)
        end.give(piece_of("x"), session)
    assert end.told() == ([], [])
    end.give(HELLO, sessions[1])
    assert end.told() == ([], ["session"])
    end.wire.close()


def test_hellos_without_an_answer_come_later_each_time():
    now, times = [0.0], []
    wire = Wire(lambda *_: times.append(now[0]), timeout=16, now=lambda: now[0])
    wire.connect()
    for _ in range(1100):
        wire.tick()
        # Frames for a session that it does not know do not set the pace.
        wire.receive(encode(Ack(1, 1, 0, 0), "0" * 16, wire._own))
        now[0] += 1
    assert [*np.diff(times)] == [0, *(2**n - 1 for n in range(1, 10))]
    wire.connect()  # by the application
    assert times[-1] == now[0]
    wire.close()


def test_a_wire_without_a_timeout_sends_nothing_by_itself():
    end = Session()
    end.wire.connect()
    end.told()
    end.wire.tick()
    end.give(HELLO, "0" * 16)
    end.wire.send("x", np.zeros(3))
    end.told()
    end.wire.tick()
    assert end.told() == ([], [])
    end.wire.close()


def test_what_is_not_acknowledged_in_time_is_sent_again():
    now = [0.0]
    end = Session(timeout=5, now=lambda: now[0])
    end.wire.connect()
    end.give(HELLO, "0" * 16)
    end.wire.send("x", np.zeros(3))
    end.told()
    for at, count in (4, 0), (5, 1), (10, 0), (14, 0), (15, 1), (34, 0), (35, 1):
        now[0] = at
        end.wire.tick()
        assert len(end.told()[0]) == count, at
    end.give(Ack(1, 1, 0, 24), "0" * 16)
    now[0] = inf
    end.wire.tick()
    assert end.told() == ([], [])
    end.wire.close()


@pytest.mark.parametrize("where", ["on_tensor", "on_session", "on_refuse", "send"])
def test_an_exception_of_the_application_changes_nothing_else(where):
    events, fails = [], [False]

    def call(name):
        def called(*_):
            events.append(name)
            if name == where and fails[0]:
                raise RuntimeError(name)

        return called

    names = "on_tensor", "on_session", "on_refuse"
    calls = {name: call(name) for name in names}
    wire = Wire(call("send"), limit=4, **calls)
    peer = "0" * 16

    def give(body, sender=peer):
        fails[0] = True
        try:
            payload = bytes(4) if isinstance(body, Piece) else b""
            wire.receive(encode(body, sender, wire._own), payload)
        except RuntimeError as error:
            assert str(error) == where  # noqa: PT017
        fails[0] = False

    give(HELLO)
    events.clear()
    give(piece_of("x"))
    assert events == ["send", "on_tensor"]
    events.clear()
    give(piece_of("x", 2))  # over the limit until the first one is gone
    assert sorted(events) == (["send"] if where == "send" else ["on_refuse", "send"])
    assert wire.tensors.keys() == {"x"}
    give(HELLO, "1" * 16)
    assert wire._connected
    assert not wire.tensors
    give(piece_of("y"), "1" * 16)
    assert wire.tensors["y"].shape == (4,)
    wire.close()


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [False, True])
def test_a_name_that_is_sent_again_replaces_the_tensor(at_once):
    before, freed = dlw.live_tensors(), []
    (one, other), _, carry = pair(limit=2000, on_free=freed.append)
    remotes = []
    for value in range(50):
        remotes += [one.send("y", np.full(100, value, "f8"))]
        remotes += [other.send("y", np.full(100, -value, "f8"))]
        if not at_once:
            carry()
            assert (other.tensors["y"].numpy() == value).all()
            assert (one.tensors["y"].numpy() == -value).all()
    carry()
    for remote in remotes:
        assert remote.ready.exception(timeout=0) is None
    for remote in remotes[:-2]:
        with pytest.raises(BufferError, match="was sent again: write to the newer"):
            remote.write(np.zeros(100))
        remote.free()
    carry()
    assert freed == []
    last = remotes[-2][1:2].write(np.array([7.0]))
    carry()
    assert last.done()
    assert other.tensors["y"].numpy()[:3].tolist() == [49, 7, 49]
    for end in one, other:
        assert end._receiving._held == 800
        assert end._sending._remotes.keys() == {50}
        assert not end._sending._flights
        assert len(end._receiving._freed) == 1
    remotes[-2].free()
    carry()
    assert freed == ["y"]
    assert not other.tensors
    one.close()
    other.close()
    assert dlw.live_tensors() == before


def test_what_the_application_holds_outlives_the_next_tensor():
    (one, other), _, carry = pair()
    one.send("y", np.arange(3.0))
    carry()
    hold, array = other.tensors["y"][...], other.tensors["y"].numpy()
    shown = other.tensors["y"]
    one.send("y", np.zeros(5))
    carry()
    assert shown.released
    assert other.tensors["y"].shape == (5,)
    assert hold.numpy().tolist() == array.tolist() == [0, 1, 2]
    hold.release()
    one.close()
    other.close()


def test_a_tensor_is_replaced_when_all_of_the_next_one_is_there():
    (one, other), (out, back), carry = pair(piece=LEAST_PIECE, window=LEAST_PIECE)
    old = one.send("y", np.ones(4))
    carry()
    new = one.send("y", np.zeros(LEAST_PIECE // 4))  # two pieces
    while not new.ready.done():
        assert other.tensors["y"].shape == (4,) or not out
        part = old[:1].write(np.array([5.0]))
        if out:
            other.receive(out.pop(0))
        if back:
            one.receive(back.pop(0))
        assert part is not None
    assert other.tensors["y"].shape == (LEAST_PIECE // 4,)
    carry()
    one.close()
    other.close()


def test_where_the_next_tensor_is_refused_the_one_before_stays():
    freed = []
    (one, other), _, carry = pair(limit=100, on_free=freed.append)
    old = one.send("y", np.ones(10))
    carry()
    new = one.send("y", np.zeros(10))
    carry()
    assert "limit of 100" in str(new.ready.exception(timeout=0))
    part = old[:1].write(np.array([5.0]))
    carry()
    assert part.done()
    assert other.tensors["y"].numpy()[:2].tolist() == [5, 1]
    assert freed == []
    old.free()
    carry()
    assert freed == ["y"]
    one.close()
    other.close()


def test_an_earlier_tensor_that_arrives_late_is_acknowledged_and_not_shown():
    end = Session()
    peer = "0" * 16
    end.give(HELLO, peer)
    end.told()
    end.give(piece_of("y", 5), peer)
    end.give(piece_of("y", 4), peer)
    assert end.told() == ([(Ack(5, 1, 0, 4), peer), (Ack(4, 1, 0, 4), peer)], ["y"])
    assert end.wire._receiving._ids.keys() == {5}
    end.give(Free(4, 2), peer)
    assert end.told() == ([(Ack(4, 2, 0, 0), peer)], [])
    end.give(piece_of("z", 4), peer)  # freed for ever
    assert end.told() == ([(Ack(4, 1, 0, 4), peer)], [])
    end.give(piece_of("y", 5, 3), peer)
    assert end.told() == ([(Ack(5, 3, 0, 4), peer)], ["y"])
    end.give(Piece("y", BYTE, (5,), 5, 4, 0, 4, 0, 4), peer)
    ((refuse, _),), news = end.told()
    assert isinstance(refuse, Refuse)
    assert (refuse.id, refuse.version, news) == (5, 4, [])
    end.wire.close()


def test_a_tensor_for_which_there_is_no_memory_is_refused():
    def make(piece):
        raise MemoryError

    refused = []
    end = Session(on_refuse=refused.append)
    end.wire._receiving.make = make
    end.give(HELLO, "0" * 16)
    end.give(piece_of("x"), "0" * 16)
    why = "there is no memory for 'x'"
    assert end.told()[0][-1] == (Refuse(1, 1, why), "0" * 16)
    assert [str(error) for error in refused] == [why]
