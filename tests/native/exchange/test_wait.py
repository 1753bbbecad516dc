"""`_core._wait`, through ctypes in place of JavaScript."""

import ctypes
import sys
from ctypes import c_uint32

import pytest
from bridge import function

from dlpack_web import _core

pytestmark = pytest.mark.skipif(
    sys.platform == "emscripten", reason="it would replace how the page's Python waits"
)

CALLBACK = ctypes.PYFUNCTYPE(c_uint32, c_uint32)
on_wait = function("on_wait", None, CALLBACK)
NOBODY = CALLBACK()


@pytest.fixture
def javascript():
    """Sets what waits for promises in place of JavaScript."""
    kept = []

    def wait_by(callback):
        kept.append(CALLBACK(callback))
        on_wait(kept[-1])

    yield wait_by
    on_wait(NOBODY)


def test_it_returns_when_the_promise_is_resolved(javascript):
    waited = []
    javascript(lambda number: waited.append(number) or 1)
    _core._wait(7)
    _core._wait(2**32 - 1)
    assert waited == [7, 2**32 - 1]


@pytest.mark.parametrize("handle", [1, 2**31, 2**32 - 1])
def test_it_returns_the_handle_that_came_with_the_promise(javascript, handle):
    javascript(lambda number: handle)
    assert _core._wait(7) == handle


def test_it_raises_what_the_promise_was_rejected_with():
    # A function of C that sets an exception and returns 0; ctypes prints those of its callbacks.
    on_wait(ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, CALLBACK))
    try:
        with pytest.raises(MemoryError):
            _core._wait(1)
    finally:
        on_wait(NOBODY)


def test_where_python_cannot_wait_it_says_so(javascript):
    javascript(lambda number: 0)
    with pytest.raises(RuntimeError, match="cannot wait here: that needs JSPI"):
        _core._wait(1)


def test_without_javascript_there_is_nothing_to_wait_for():
    with pytest.raises(RuntimeError, match="no JavaScript to wait for"):
        _core._wait(1)


@pytest.mark.parametrize("number", [-1, 2**70, 1.5, "1", None])
def test_numbers_that_javascript_never_gives_are_refused(javascript, number):
    javascript(lambda number: 1)
    with pytest.raises((TypeError, OverflowError)):
        _core._wait(number)
