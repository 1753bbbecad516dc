"""Which bytes of a buffer have which fault, against a list with an entry for each byte."""

import random

import pytest

from dlpack_web._backends.model.errors.errors import Fault, Faults

SIZE = 24


def a_fault(name):
    fault = Fault(name)
    fault.reported = True  # no warning at its end
    return fault


@pytest.mark.parametrize("seed", range(20))
def test_every_byte_has_the_fault_of_its_last_write(seed):
    r = random.Random(seed)
    faults, each = Faults(), [None] * SIZE
    for step in range(200):
        start, end = (
            r.randrange(SIZE + 1) for _ in range(2)
        )  # nothing, where end <= start
        fault = a_fault(f"step {step}") if r.random() < 0.5 else None
        faults.note(start, end, fault)
        each[start:end] = [fault] * max(end - start, 0)
        assert [faults.among(i, i + 1) for i in range(SIZE)] == each
        low, high = sorted(r.randrange(SIZE + 1) for _ in range(2))
        assert (faults.among(low, high) in each[low:high]) or low == high
        assert (faults.among(low, high) is None) == (set(each[low:high]) <= {None})
        assert len(faults._found) <= len([one for one in each if one is not None])


def test_what_a_finalizer_notes_meanwhile_is_not_lost(monkeypatch):
    faults, first, second = Faults(), a_fault("first"), a_fault("second")
    faults.note(0, 8, first)
    real, again = Faults.note.__globals__["_outside"], [True]

    def outside(*args):
        if again:
            again.clear()
            faults.note(4, 8, second)
        return real(*args)

    monkeypatch.setitem(Faults.note.__globals__, "_outside", outside)
    faults.note(0, 2, None)
    assert [faults.among(i, i + 1) for i in range(0, 8, 2)] == [
        None,
        first,
        second,
        second,
    ]
