"""What run_sync() waits for, woken through ctypes as JavaScript would."""

import asyncio
import gc
import random
import sys
import weakref
from ctypes import c_int32, c_uint32

import pytest
from bridge import function

from dlpack_web import _core

wake = function("wake", c_int32, c_uint32, c_int32)


@pytest.mark.parametrize("ok", [True, False])
def test_whoever_waits_is_told_once_with_the_outcome(ok):
    wait, told = _core._Wait(), []
    assert asyncio.isfuture(wait)
    assert wait.add_done_callback(told.append, context=None) is None
    with pytest.raises(RuntimeError, match="not done yet"):
        wait.result()
    assert wake(wait.number, ok) == 1
    assert wake(wait.number, not ok) == 0
    assert told == [wait]
    assert wait.result() is ok


def test_whoever_comes_later_is_told_at_once():
    wait, told = _core._Wait(), []
    assert wake(wait.number, 1) == 1
    wait.add_done_callback(told.append)
    assert told == [wait]


def test_waits_that_were_given_up_are_not_found():
    wait, told = _core._Wait(), []
    number = wait.number
    wait.add_done_callback(told.append)
    del wait
    assert (wake(number, 1), told) == (0, [])
    assert wake(0, 1) == 0


def test_one_waits_and_in_one_way():
    wait = _core._Wait()
    wait.add_done_callback(print)
    with pytest.raises(RuntimeError, match="waits for this already"):
        wait.add_done_callback(print)
    with pytest.raises(RuntimeError, match="not for await"):
        wait.__await__()
    with pytest.raises(TypeError, match="no arguments"):
        _core._Wait(1)
    with pytest.raises(TypeError):
        wait.add_done_callback()


def test_an_error_of_who_is_told_is_not_the_wakers(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_type))
    wait = _core._Wait()
    wait.add_done_callback(lambda _: 1 / 0)
    assert wake(wait.number, 1) == 1
    assert seen == [ZeroDivisionError]
    with pytest.raises(ZeroDivisionError):
        wait.add_done_callback(lambda _: 1 / 0)
    assert wait.result() is True


def test_the_last_who_holds_it_lets_go_of_it_when_told():
    class Told:
        def __init__(self):
            self.wait = _core._Wait()

        def __call__(self, wait):
            self.wait = None
            assert wait.result() is True

    told = Told()
    number = told.wait.number
    told.wait.add_done_callback(told)
    gone = weakref.ref(told)
    assert wake(number, 1) == 1
    del told
    gc.collect()
    assert gone() is None
    assert wake(number, 1) == 0


def test_waits_that_are_gone_hold_their_type_no_longer():
    gc.collect()
    before = sys.getrefcount(_core._Wait)
    waits = [_core._Wait() for _ in range(100)]
    with_them = sys.getrefcount(_core._Wait)
    del waits
    after = sys.getrefcount(_core._Wait)
    assert (with_them, after) == (before + 100, before)


def test_many_at_once_in_any_order():
    chance = random.Random(12)
    waits = {wait.number: wait for wait in (_core._Wait() for _ in range(500))}
    assert len(waits) == 500
    told = []
    for wait in waits.values():
        wait.add_done_callback(told.append)
    order = chance.sample(list(waits), len(waits))
    for number in order:
        if chance.random() < 0.3:
            del waits[number]
            assert wake(number, 1) == 0
        else:
            assert wake(number, 1) == 1
    assert told == [waits[number] for number in order if number in waits]
