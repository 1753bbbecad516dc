# What is sent of arrays in any layout: the values, in about the time that packing them takes.
import gc
import random
import sys

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web import _core
from dlpack_web._layout.dtype import parse_dtype
from dlpack_web_page._wire import source as sources
from dlpack_web_page._wire.frame import LEAST_PIECE, Hello, encode
from dlpack_web_page.wire import Wire


def sent(given, piece=LEAST_PIECE):
    """The bytes of an array, piece by piece."""
    with dlw.from_dlpack(given) as t:
        source = sources.source_of(t, t.dtype, t.shape)
    end = source.nbytes
    pieces = range(0, end, piece)
    parts = [bytes(source.between(at, min(at + piece, end))) for at in pieces]
    source.release()
    return b"".join(parts)


def layouts(rng):
    """A random array, and any view of it."""
    ndim = rng.randrange(5)
    shape = [rng.choice([0, 1, 2, 3, 7, 30, 200]) for _ in range(ndim)]
    while np.prod(shape, dtype=float) > 200_000:
        shape[shape.index(max(shape))] //= 4
    dtype = rng.choice(["?", "i1", "u2", "f2", "i4", "f4", "i8", "f8", "c8"])
    array = (np.arange(np.prod(shape, dtype=int)) % 2000).astype(dtype).reshape(shape)
    for _ in range(rng.randrange(4) if array.ndim else 0):
        kind = rng.choice(["F", "permute", "reverse", "step", "broadcast", "offset"])
        if kind == "F":
            array = np.asfortranarray(array)
        elif kind == "permute":
            array = array.transpose(rng.sample(range(array.ndim), array.ndim))
        axis = rng.randrange(array.ndim)
        key = [slice(None)] * array.ndim
        if kind == "reverse":
            key[axis] = slice(None, None, -1)
        elif kind == "step":
            key[axis] = slice(None, None, rng.choice([2, -3]))
        elif kind == "offset":
            key[axis] = slice(rng.randrange(3), None)
        elif kind == "broadcast" and array.size < 30_000:
            array = np.broadcast_to(array, (rng.randrange(1, 5), *array.shape))
            key = ...
        array = array[tuple(key) if isinstance(key, list) else key]
    return array


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_values_arrive_whatever_the_layout(seed, monkeypatch):
    before = dlw.live_tensors()
    for number in range(seed, seed + 20):
        rng = random.Random(number)
        monkeypatch.setattr(sources, "_MOST_PACKED", rng.choice([1, 100_000, 8 << 20]))
        array = layouts(rng)
        piece = rng.choice([LEAST_PIECE, LEAST_PIECE + 960, 1 << 20])
        take = dlw.from_dlpack if array.flags.writeable else dlw.from_buffer
        with take(array) as given:
            assert sent(given, piece) == array.tobytes(), number
        assert dlw.live_tensors() == before


@pytest.mark.parametrize(
    "shape",
    [(30_000, 8), (8, 30_000), (500, 500), (10, 10, 10, 240), (2,) * 17, (240_000, 1)],
)
@pytest.mark.parametrize("piece", [LEAST_PIECE, 1 << 20])
def test_columns_take_no_more_calls_than_packing_them_first(shape, piece):
    """Calls of Python and of C; their number is that of pieces, not of rows."""
    columns = np.asfortranarray(np.arange(np.prod(shape), dtype="f8").reshape(shape))
    gc.disable()
    try:
        packed = calls_of(lambda: sent(np.ascontiguousarray(columns), piece))
        strided = calls_of(lambda: sent(columns[::-1], piece))
    finally:
        gc.enable()
    assert strided < 1.5 * packed + 500


def calls_of(run):
    count = 0

    def counted(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def test_what_was_packed_is_let_go_as_soon_as_it_was_sent():
    kept = []
    one = Wire(lambda header, payload: kept.append(None), piece=LEAST_PIECE)
    one.receive(encode(Hello(2**40, LEAST_PIECE), "0" * 16, one._own))
    one.send("x", np.zeros((100, 1000)).T)
    writes = {flight.write for flight in one._sending._flights.values()}
    assert [len(each.source._packed[1]) for each in writes] == [0]
    one.close()


@pytest.mark.parametrize("padded", [False, True])
def test_elements_of_less_than_a_byte_are_refused(sub_byte_row, padded):
    """Packed and padded ones would be different bytes of one dtype."""
    name, wire = sub_byte_row["name"], Wire(lambda *_: None)
    given = dlw.from_dlpack(Padded(name)) if padded else dlw.empty(8, name)
    with given:
        with pytest.raises(BufferError, match="safetensors has no"):
            wire.send("x", given)
        with pytest.raises(BufferError, match="must be the same"):
            wire.send("x", np.zeros(8, "u1")).write(given)
    wire.close()


def test_the_wire_takes_what_from_dlpack_takes():
    masked = np.ma.array(np.arange(4.0), mask=[0, 1, 0, 0])
    wire = Wire(lambda *_: None)
    remote = wire.send("x", np.zeros(4))
    ways = dlw.from_dlpack, lambda x: wire.send("y", x), remote.write
    assert len({outcome(way, masked) for way in ways}) == 1
    wire.close()


def outcome(way, given):
    try:
        way(given)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)
    return None


class Padded:
    """Exports sub-byte elements of a byte each."""

    def __init__(self, name):
        self.tensor = _core._empty((8,), parse_dtype(name)._packed, True)
        memory, _ = _core._raw(self.tensor)
        np.asarray(memory)[...] = 0

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(max_version=(1, 3))

    def __dlpack_device__(self):
        return (1, 0)
