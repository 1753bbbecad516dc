# The receiving half against models: random pieces of random writes, under names that come
# again, in any order. What a peer may make it keep is bounded.
import os
import random

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web._layout.dtype import parse_dtype
from dlpack_web_page._wire import receiving
from dlpack_web_page._wire.frame import Piece
from dlpack_web_page._wire.receiving import MOST_VERSIONS, Receiving
from dlpack_web_page._wire.spans import Spans

RUNS = int(os.environ.get("WIRE_RUNS", "100"))
BYTE = parse_dtype("uint8")


def runs_of(versions):
    """What Spans has for that: ranges of one version."""
    found = []
    for at, version in enumerate(versions):
        if found and found[-1][1] == at and found[-1][2] == version:
            found[-1] = found[-1][0], at + 1, version
        elif version:
            found.append((at, at + 1, version))
    return found


@pytest.mark.parametrize("first", range(0, RUNS, 50))
def test_ranges_are_those_of_an_array_of_versions(first):
    for seed in range(first, first + 50):
        rng = random.Random(seed)
        spans, model = Spans(), np.zeros(24, int)
        for _ in range(40):
            begin = rng.randrange(25)
            end, version = rng.randrange(begin, 25), rng.randint(1, 6)
            below = runs_of((model < version)[begin:end])
            parts = [(begin + start, begin + stop) for start, stop, _ in below]
            assert spans.below(begin, end, version) == parts
            lower = np.flatnonzero(model[begin:] < version)
            assert spans.reach(begin, version) == (
                begin + lower[0] if lower.size else 24
            )
            spans.mark(begin, end, version)
            model[begin:end] = np.maximum(model[begin:end], version)
            assert spans._spans == runs_of(model)
            assert len(spans) == len(runs_of(model))
            if rng.random() < 0.1:
                spans._enough = 0
                spans.forget(2)
                model[model <= 2] = 0
                assert spans._spans == runs_of(model)
            if rng.random() < 0.03:
                spans.clear()
                model[:] = 0


def piece(id, version, part, whole=None, *, name="x", size=64, dtype=BYTE):
    """Bytes `part` of a write of `whole`."""
    begin, end = whole or part
    return Piece(name, dtype, (size,), id, version, begin, end, *part)


def take(receiving, given):
    payload = bytes([given.version % 256])
    return receiving.take(given, memoryview(payload * (given.last - given.first)))


class Model:
    """What a tensor must have: the highest version of each byte."""

    def __init__(self, id, name, size):
        self.id, self.name, self.size = id, name, size
        self.ranges = {1: (0, size)}
        self.bytes, self.done, self.early = np.zeros(size, int), set(), []

    def write(self, rng):
        begin = rng.randrange(self.size + 1)
        version = len(self.ranges) + 1
        self.ranges[version] = begin, rng.randrange(begin, self.size + 1)

    def piece(self, rng):
        """A random one of a random write: in order, repeated, missing."""
        version = rng.choice([*self.ranges])
        begin, end = self.ranges[version]
        cuts = sorted({begin, end, *range(-(-begin // 16) * 16, end, 16)})
        at = rng.randrange(max(len(cuts) - 1, 1))
        part = (cuts[at], cuts[at + 1]) if len(cuts) > 1 else (begin, end)
        return piece(
            self.id, version, part, (begin, end), name=self.name, size=self.size
        )

    def take(self, given):
        """Enters it; the versions that get an event now."""
        before = self.bytes[given.first : given.last]
        self.bytes[given.first : given.last] = np.maximum(before, given.version)
        begin, end = self.ranges[given.version]
        is_complete = (self.bytes[begin:end] >= given.version).all()
        if is_complete and given.version not in self.done:
            self.done.add(given.version)
            self.early.append(given.version)
        if not self.bytes.all():
            return []
        found, self.early = self.early, []
        return found


@pytest.mark.parametrize("first", range(0, RUNS, 50))
def test_bytes_and_events_are_those_of_a_model(first):
    before = dlw.live_tensors()
    for seed in range(first, first + 50):
        check_run(random.Random(seed))
        assert dlw.live_tensors() == before, seed


def check_run(rng):
    receiver = Receiving(2**20, "cpu")
    models, seen, freed, latest, ids = {}, set(), set(), {}, 0
    for _ in range(rng.randrange(20, 150)):
        luck = rng.random()
        if luck < 0.1 or not models:
            ids += 1
            models[ids] = Model(ids, rng.choice("ab"), rng.choice([0, 1, 40, 100]))
        elif luck < 0.25:
            rng.choice([*models.values()]).write(rng)
        elif luck < 0.28:
            id = rng.choice([*models])
            receiver.free(id)
            freed.add(id)
        else:
            model = rng.choice([*models.values()])
            given = model.piece(rng)
            found = take(receiver, given)
            gone = model.id in freed or model.id < latest.get(model.name, 0)
            seen |= set() if gone else {model.id}
            expected = [] if gone else model.take(given)
            assert [each.version for each in found] == expected
            for each in found:
                assert (each.name, each.id) == (model.name, model.id)
                assert (each.begin, each.end) == model.ranges[each.version]
                assert each.tensor.tobytes() == bytes(model.bytes.astype("u1"))
            if found:  # earlier ones of its name are gone
                latest[model.name] = model.id
                names = [m.id for m in models.values() if m.name == model.name]
                freed |= {id for id in seen.intersection(names) if id < model.id}
        for name, id in [*latest.items()]:
            if id in freed:
                del latest[name]
        check_books(receiver, models, freed)
    for id in set(models) - freed:
        if (incoming := receiver._ids.get(id)) is not None:
            shown = bytes(models[id].bytes.astype("u1"))
            written = models[id].bytes > 0
            has = np.frombuffer(incoming.tensor.tobytes(), "u1")
            assert (has[written] == np.frombuffer(shown, "u1")[written]).all()
    receiver.clear()
    check_books(receiver, {}, set())


def check_books(receiver, models, freed):
    """What it keeps is what it counts."""
    kept = receiver._ids
    assert not kept.keys() & freed
    assert receiver._held == sum(models[id].size for id in kept)
    assert receiver._entries == sum(each.entries for each in kept.values())
    named = {}
    for id, incoming in kept.items():
        named.setdefault(incoming.name, set()).add(id)
    assert receiver._named == named
    assert all(id in named[name] for name, id in receiver._latest.items())
    if not kept:
        assert receiver._entries == receiver._held == 0


def test_what_is_complete_keeps_nothing_about_it():
    receiver = Receiving(2**20, "cpu")
    for version in range(1, 3000):
        assert take(receiver, piece(1, version, (0, 32), (0, 64))) == []
        assert take(receiver, piece(1, version, (32, 64), (0, 64)))
        assert receiver._entries == 0
    receiver.clear()


def test_a_part_that_arrives_first_is_no_event_before_all_is_there():
    """The other elements would be memory that nobody has written."""
    receiver = Receiving(2**20, "cpu")
    assert take(receiver, piece(1, 2, (8, 16))) == []
    assert take(receiver, piece(1, 1, (0, 32), (0, 64))) == []
    found = take(receiver, piece(1, 1, (32, 64), (0, 64)))
    assert [each.version for each in found] == [2, 1]
    whole = found[0].tensor.tobytes()
    assert whole == bytes([1] * 8 + [2] * 8 + [1] * 48)
    receiver.clear()


REFUSED = {
    "another name": piece(1, 2, (0, 8), name="y"),
    "another shape": piece(1, 2, (0, 8), size=63),
    "another dtype": piece(1, 2, (0, 8), dtype=parse_dtype("int8")),
    "another end": piece(1, 3, (0, 8), (0, 9)),
    "another begin": piece(1, 3, (8, 16), (8, 64)),
    "a version too late": piece(1, 2 + MOST_VERSIONS, (0, 8)),
    "too large": piece(2, 1, (0, 8), size=1000),
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(given):
    receiver = Receiving(1000, "cpu")
    take(receiver, piece(1, 1, (0, 64)))
    take(receiver, piece(1, 3, (0, 8), (0, 64)))
    before = receiver._ids[1].tensor.tobytes(), receiver._held, receiver._entries
    with pytest.raises(BufferError, match="refused"):
        take(receiver, given)
    after = receiver._ids[1].tensor.tobytes(), receiver._held, receiver._entries
    assert before == after
    assert receiver._ids.keys() == {1}
    assert take(receiver, piece(1, 1 + MOST_VERSIONS, (0, 8)))  # the last one allowed
    take(receiver, piece(2, 1, (0, 8), size=1000 - 64))  # all of the limit
    receiver.clear()


def test_tensors_gaps_and_entries_are_bounded(monkeypatch):
    monkeypatch.setattr(receiving, "_MOST_TENSORS", 5)
    monkeypatch.setattr(receiving, "_MOST_GAPS", 7)
    monkeypatch.setattr(receiving, "_MOST_ENTRIES", 20)
    receiver = Receiving(2**20, "cpu")
    for id in range(5):
        take(receiver, piece(id, 1, (0, 0), name=f"{id}", size=0))
    with pytest.raises(BufferError, match="there are 5 already"):
        take(receiver, piece(5, 1, (0, 0), name="5", size=0))
    receiver.free(4)
    for at in range(0, 40, 2):
        take(receiver, piece(5, 1, (at, at + 1), (0, 64), name="5"))
        if receiver._entries >= 20:
            break
    assert receiver._entries == 20
    with pytest.raises(BufferError, match="incomplete"):
        take(receiver, piece(5, 1, (60, 61), (0, 64), name="5"))
    for id in range(100, 112, 2):  # and 4 before them
        receiver.free(id)
    assert len(receiver._freed) == 7
    for id in 100, 4, 102, 101, 109:  # known already, or beside one
        assert receiver.free(id) is None
    receiver.free(5)
    receiver.free(200)
    receiver.free(300)
    assert len(receiver._freed) == 7
    with pytest.raises(BufferError, match="freed out of order"):
        receiver.free(400)
    with pytest.raises(BufferError, match="already"):  # each may be one more gap
        take(receiver, piece(500, 1, (0, 0), name="0", size=0))
    receiver.clear()
    assert len(receiver._freed) == 0


@pytest.mark.parametrize("order", ["every second", "backwards", "two versions"])
def test_a_receiver_with_many_gaps_does_not_look_at_them_all(order, monkeypatch):
    """Counts what is looked at: a search, and what changes."""
    looked = 0

    class Counted(list):
        def __getitem__(self, key):
            nonlocal looked
            looked += 1 if isinstance(key, int) else len(range(len(self))[key])
            return super().__getitem__(key)

        def __iter__(self):
            nonlocal looked
            looked += len(self)
            return super().__iter__()

    class Counting(Spans):
        def __init__(self):
            super().__init__()
            self._spans = Counted()

        def forget(self, up_to):
            super().forget(up_to)
            self._spans = Counted(self._spans)

    monkeypatch.setattr(receiving, "Spans", Counting)
    count = 4000
    receiver = Receiving(2**20, "cpu")
    places = [*range(0, count, 2), *range(1, count, 2)]
    if order == "backwards":
        places = [*reversed(range(count))]
    whole, done = (0, count), 0
    for at in places:
        version = 1 + at % 2 if order == "two versions" else 1
        given = piece(1, version, (at, at + 1), whole, size=count)
        done += len(take(receiver, given))
    assert done == (0 if order == "two versions" else 1)
    assert looked < 100 * count
    receiver.clear()
