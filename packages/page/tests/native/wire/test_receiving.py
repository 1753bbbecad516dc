# The receiving half: its ranges against a model, and what only Python sees.
import os
import random

import numpy as np
import pytest
from player import Player

from dlpack_web_page._wire import receiving
from dlpack_web_page._wire.spans import Spans

RUNS = int(os.environ.get("WIRE_RUNS", "100"))


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
            reach = begin + lower[0] if lower.size else 24
            assert spans.reach(begin, version) == reach
            spans.mark(begin, end, version)
            model[begin:end] = np.maximum(model[begin:end], version)
            if rng.random() < 0.1:
                spans._enough = 0
                spans.forget(2)
                model[model <= 2] = 0
            if rng.random() < 0.03:
                spans.clear()
                model[:] = 0
            assert spans._spans == runs_of(model)
            assert len(spans) == len(runs_of(model))


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
    count, player = 4000, Player()
    player.play("open")
    places = [*range(0, count, 2), *range(1, count, 2)]
    if order == "backwards":
        places = [*reversed(range(count))]
    done = 0
    for at in places:
        version = 1 + at % 2 if order == "two versions" else 1
        lines = player.play(
            f"in piece x 1.{version} {at}-{at + 1} of 0-{count} uint8[{count}]"
        )
        done += len(lines) - 1
    assert done == (0 if order == "two versions" else 1)
    assert looked < 100 * count
    player.play("close")


def test_what_the_application_holds_outlives_the_next_tensor():
    player = Player()
    player.play("open")
    player.play("in piece y 1.1 float64[3]")
    shown = player.wire.tensors["y"]
    hold, array = shown[...], shown.numpy()
    elements = array.tolist()
    player.play("in piece y 2.1 float64[5]")
    assert shown.released
    assert player.wire.tensors["y"].shape == (5,)
    assert hold.numpy().tolist() == array.tolist() == elements
    hold.release()
    player.play("close")


def test_a_tensor_for_which_there_is_no_memory_is_refused():
    def make(piece):
        raise MemoryError

    player = Player()
    player.play("open")
    player.wire._receiving.make = make
    why = "there is no memory for 'x'"
    assert player.play("in piece x 1.1") == [f"out refuse 1.1 {why}", f"refused {why}"]


def test_what_is_known_of_incomplete_writes_is_bounded(monkeypatch):
    """One entry for the write, and one for each range."""
    monkeypatch.setattr(receiving, "_MOST_ENTRIES", 20)
    player, piece = Player(), "of 0-64 uint8[64]"
    player.play("open")
    found = player.play(f"repeat 0:38:2 in piece x 1.1 {{}}-{{+1}} {piece}")
    assert found == ["19 times out ack"]
    refused, _ = player.play(f"in piece x 1.1 60-61 {piece}")
    assert refused.endswith("too many writes of it are incomplete")
    player.play("in free 1.2")
    assert player.play(f"in piece x 2.1 60-61 {piece}") == ["out ack 2.1 60-61"]
    player.play("close")
