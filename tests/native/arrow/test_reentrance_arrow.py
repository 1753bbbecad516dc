"""Wherever Arrow's producers run code of their own, they may call us with the same object:
one caller owns what a capsule holds, everything is released once, nothing leaks."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from arrow_forge import (
    GET_ERROR,
    GET_NEXT,
    GET_SCHEMA,
    RELEASE_STREAM,
    Forged,
    Stream,
    bitmap,
    capsule,
)
from conftest import IN_PYODIDE, in_threads

import dlpack_web as dlw

SIX = np.arange(6, dtype="i4")
CHUNK = {"length": 6, "buffers": [None, SIX]}
TAKEN = "taken already|was released"


@pytest.fixture(autouse=True)
def producers():
    yield
    gc.collect()
    Forged.alive.clear()


@pytest.fixture
def here(host_python):
    """The one that starts threads."""


def same_thread(call):
    call()


def other_thread(call):
    in_threads(lambda _: call(), [None])


THREADS = [
    same_thread,
    pytest.param(
        other_thread,
        marks=pytest.mark.skipif(IN_PYODIDE, reason="Pyodide has no threads"),
    ),
]


class Again:
    """Takes `producer` as often as it is called, and keeps what came of it."""

    def __init__(self, producer, run, places):
        self.producer, self.run, self.places = producer, run, places
        self.got, self.refused, self.busy = [], [], False
        producer.during = self

    def __call__(self, place):
        if place not in self.places or self.busy:
            return
        self.busy = True  # our own call has the same places
        self.run(self.take)
        self.busy = False

    def take(self):
        dlw.inspect({})
        gc.collect()
        try:
            self.got.append(dlw.from_arrow(self.producer).numpy().tolist())
        except BufferError as error:
            self.refused.append(str(error))


def once_of(kind):
    """A producer whose hook gives the same capsules each time, and that hook's name."""
    producer = Forged(b"i", CHUNK, stream=kind == "stream")
    once = producer._give() if kind == "array" else capsule(producer.stream)
    return producer, once, f"__arrow_c_{kind}__"


@pytest.mark.parametrize("run", THREADS)
@pytest.mark.parametrize("kind", ["stream", "array"])
def test_a_hook_that_takes_what_it_gives(kind, run):
    """Here the inner call is the first one."""
    producer, once, name = once_of(kind)
    again = Again(producer, run, ["hook"])
    setattr(producer, name, lambda *_: again("hook") or once)
    with pytest.raises(BufferError, match=TAKEN):
        dlw.from_arrow(producer)
    assert again.got == [SIX.tolist()]
    gc.collect()
    assert producer.released == {"schema": 1, "array": 1, "stream": kind == "stream"}


@pytest.mark.parametrize("_", range(20))
@pytest.mark.parametrize("kind", ["stream", "array"])
def test_three_threads_take_the_same(here, kind, _):
    """The owner of a stream is in its callback until the others were refused."""
    producer, once, name = once_of(kind)
    setattr(producer, name, lambda *_: once)
    others, got, refused = threading.Event(), [], []
    if kind == "stream":
        producer.during = lambda place: others.wait(60)

    def take(_):
        try:
            got.append(dlw.from_arrow(producer).numpy().tolist())
        except BufferError as error:
            refused.append(str(error))
        if len(refused) == 2:
            others.set()

    in_threads(take, range(3))
    gc.collect()
    assert (got, len(refused)) == ([SIX.tolist()], 2)
    assert producer.released == {"schema": 1, "array": 1, "stream": kind == "stream"}


STREAM_PLACES = ["get_schema", "get_next", "schema", "array", "stream"]


class TestStreams:
    @pytest.mark.parametrize("run", THREADS)
    @pytest.mark.parametrize("place", STREAM_PLACES)
    def test_callbacks_that_take_the_same_stream(self, place, run):
        """The capsule is the same: the first caller has what it held."""
        producer = Forged(b"i", CHUNK, {**CHUNK}, stream=True)
        once = capsule(producer.stream)
        producer.__arrow_c_stream__ = lambda *_: once
        again = Again(producer, run, [place])
        with dlw.from_arrow(producer) as t:
            assert t.numpy().tolist() == [*SIX, *SIX]
        assert again.got == []
        assert len(again.refused) >= 1
        assert all("taken already" in text for text in again.refused)
        assert producer.released == {"schema": 1, "array": 2, "stream": 1}

    @pytest.mark.parametrize("run", THREADS)
    def test_errors_that_take_the_same_stream(self, run):
        producer = Forged(b"i", CHUNK, stream=True)
        said = ctypes.c_char_p(b"the disk is gone")
        address = ctypes.cast(said, ctypes.c_void_p).value
        again = Again(producer, run, ["get_last_error"])

        def last(_):
            again("get_last_error")
            return address

        producer.stream.get_last_error = GET_ERROR(last)
        producer.stream.get_next = GET_NEXT(lambda *_: 5)
        with pytest.raises(BufferError, match=r"\(5\): the disk is gone"):
            dlw.from_arrow(producer)
        assert len(again.refused) == 1
        assert producer.released == {"schema": 1, "array": 0, "stream": 1}

    def test_streams_within_streams(self):
        """At depth, each with a capsule of its own."""
        made, tensors = [], []

        def nest(depth):
            producer = Forged(b"i", CHUNK, stream=True)
            made.append(producer)

            def during(place):
                if place == "get_next" and depth > 0 and len(made) == 26 - depth:
                    nest(depth - 1)

            producer.during = during
            tensors.append(dlw.from_arrow(producer))

        nest(25)
        assert [t.numpy().tolist() for t in tensors] == [SIX.tolist()] * 26
        tensors.clear()
        for each in made:
            assert each.released == {"schema": 1, "array": 1, "stream": 1}

    @pytest.mark.parametrize("place", STREAM_PLACES)
    def test_the_last_reference_goes_meanwhile(self, place):
        """The capsule is only the hook's result, and the producer forgets its own."""
        producer = Forged(b"i", CHUNK, {**CHUNK}, stream=True)
        own = [capsule(producer.stream)]
        producer.__arrow_c_stream__ = lambda *_: own[0]
        producer.during = lambda at: own.clear() if at == place else None
        with dlw.from_arrow(producer) as t:
            assert t.shape == (12,)
        assert producer.released == {"schema": 1, "array": 2, "stream": 1}

    @pytest.mark.parametrize("missing", ["get_schema", "get_next"])
    def test_callbacks_that_are_not_there(self, missing):
        producer = Forged(b"i", CHUNK, stream=True)
        setattr(producer.stream, missing, type(getattr(producer.stream, missing))())
        with pytest.raises(BufferError, match=missing):
            dlw.from_arrow(producer)
        assert producer.released["stream"] == 1
        assert producer.released["array"] == 0

    def test_a_stream_is_moved_before_it_is_used(self):
        """Its callbacks get the stream where it lies then; the capsule's is released."""
        producer = Forged(b"i", stream=True)
        seen = []

        def get_next(stream, out):
            seen.append((bool(stream.contents.release), bool(producer.stream.release)))
            return 0

        producer.stream.get_next = producer._keep(GET_NEXT(get_next))
        with dlw.from_arrow(producer) as t:
            assert t.shape == (0,)
        assert seen == [(True, False)]


class TestArrays:
    @pytest.mark.parametrize("letters", [b"i", b"b", b"u"])
    @pytest.mark.parametrize("run", THREADS)
    @pytest.mark.parametrize("place", ["schema", "array"])
    def test_releases_that_take_the_same_array(self, place, run, letters):
        producer = Forged(letters, {"length": 6, "buffers": [None, bitmap(SIX % 2)]})
        if letters == b"i":
            producer = Forged(letters, CHUNK)
        once = producer._give()
        producer.__arrow_c_array__ = lambda *_: once
        again = Again(producer, run, [place])
        if letters == b"u":
            with pytest.raises(BufferError, match="string"):
                dlw.from_arrow(producer)
        else:
            dlw.from_arrow(producer).release()
        gc.collect()
        assert again.got == []
        assert len(again.refused) == 1
        assert producer.released == {"schema": 1, "array": 1, "stream": 0}

    @pytest.mark.parametrize("run", THREADS)
    def test_a_release_that_uses_what_is_released(self, run):
        producer = Forged(b"i", CHUNK)
        t = dlw.from_arrow(producer)
        seen = []

        def during(place):
            t.release()  # again
            seen.append((place, t.released))
            with pytest.raises(dlw.ReleasedError):
                t.numpy()
            with pytest.raises(dlw.ReleasedError):
                dlw.to_arrow(t)
            dlw.inspect({})

        producer.during = lambda place: run(lambda: during(place))
        t.release()
        assert seen == [("array", True)]
        assert producer.released == {"schema": 1, "array": 1, "stream": 0}

    def test_a_hook_that_releases_itself(self):
        """`__arrow_c_array__` of our own Tensor: the capsules have holds of their own."""
        t = dlw.from_dlpack(SIX)

        class Fickle:
            def __arrow_c_array__(self, requested_schema=None):
                given = t.__arrow_c_array__()
                t.release()
                return given

        with dlw.from_arrow(Fickle()) as other:
            assert other.numpy().tolist() == SIX.tolist()

    def test_capsules_of_ours_that_are_taken_twice(self):
        t = dlw.from_dlpack(SIX)
        given = t.__arrow_c_array__()

        class Twice:
            def __arrow_c_array__(self, requested_schema=None):
                return given

        with dlw.from_arrow(Twice()), pytest.raises(BufferError, match="taken already"):
            dlw.from_arrow(Twice())

    def test_a_request_that_releases_the_tensor(self):
        """What is no request is shown in the message, which runs its code."""
        t = dlw.from_dlpack(SIX)

        class Request:
            def __repr__(self):
                t.release()
                gc.collect()
                return "a request"

        with pytest.raises(TypeError, match="not a request"):
            t.__arrow_c_array__(Request())
        assert t.released


class Watcher:
    """Not tracked by the collector: its finalizer runs where the last reference goes."""

    __slots__ = ()

    #: Of each finalizer: managed tensors, Tensors that were handed out.
    seen: "list[tuple[int, int]]" = []  # noqa: RUF012

    def __del__(self):
        alive = dlw._core._alive()
        self.seen.append((dlw.live_tensors(), len(alive)))
        assert all(sys.getrefcount(each) > 1 for each in alive)


# CPython in Pyodide overflows the engine's stack there, with lists alone.
DEEP = pytest.param(
    9_800,
    marks=pytest.mark.skipif(
        IN_PYODIDE, reason="lists nested so deep crash Pyodide itself"
    ),
)


@pytest.mark.parametrize("shallow", [0, 300, DEEP])
def test_finalizers_do_not_revive_a_tensor(shallow):
    """CPython puts off deallocations at depth (its trashcan): what waits there has no
    references, and must not be given any. Python 3.12 does so from depth 50 on, 3.13 at
    about 9,950."""
    Watcher.seen.clear()
    nest = None
    for _ in range(300):
        nest = [Watcher(), dlw.empty(1), nest]
    for _ in range(shallow):
        nest = [nest]
    before = dlw.live_tensors()
    assert before == 300
    del nest
    assert dlw.live_tensors() == 0
    assert len(Watcher.seen) == 300
    waiting = {live - handed for live, handed in Watcher.seen}
    depth = {(3, 12): 0, (3, 13): 9_800}.get(sys.version_info[:2])
    if shallow == depth and not IN_PYODIDE:
        assert max(waiting) > 0  # or this test shows nothing


def test_inspect_in_a_finalizer():
    """Of what waits there it says nothing, nor does it touch it."""
    reports = []

    class Inspector:
        __slots__ = ()

        def __del__(self):
            waiting = dlw.live_tensors() - len(dlw._core._alive())
            if waiting > 0 and len(reports) < 2:
                reports.append((waiting, dlw.inspect({})))

    for shallow in (0,) if IN_PYODIDE else (0, 9_800):
        nest = None
        for _ in range(300):
            nest = [Inspector(), dlw.empty(1), nest]
        for _ in range(shallow):
            nest = [nest]
        del nest
    for waiting, report in reports:
        assert len(report.tensors) == report.live - waiting
        assert report.elsewhere == waiting
    assert dlw.live_tensors() == 0
    assert reports or sys.version_info >= (3, 14) or IN_PYODIDE


def test_an_empty_stream_struct():
    """Nothing of it is called, not even release."""
    there = Stream(release=RELEASE_STREAM(), get_schema=GET_SCHEMA(lambda *_: 1))

    class Column:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule(there)

    with pytest.raises(BufferError, match=TAKEN):
        dlw.from_arrow(Column())
