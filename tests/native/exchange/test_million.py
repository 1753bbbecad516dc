"""Exchanges of every kind, again and again: memory and object counts stay as they are."""

import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from bridge import lend
from conftest import IN_PYODIDE, OLD_NUMPY

import dlpack_web as dlw
from dlpack_web import _core

#: How often each way is gone.
EACH = 20_000
# Growth that is let pass: less than half of what one way would leak with one struct of
# 112 bytes, or with one object, each time.
BYTES, OBJECTS = 1 << 20, 1000
# A leak grows in every round. An allocator that finds no room between its own blocks may grow
# once: wasm memory does so by 10 MiB at least.
ROUNDS = 3


def versioned(array):
    with dlw.from_dlpack(array) as tensor:
        np.from_dlpack(tensor)


def legacy(array):
    with dlw.from_buffer(array) as tensor:
        dlw.from_dlpack(tensor.__dlpack__()).release()


def legacy_producer(array):
    with dlw.from_dlpack(array.__dlpack__()) as tensor:
        np.from_dlpack(tensor)


def left_alone(array):
    with dlw.from_dlpack(array) as tensor:
        tensor.__dlpack__()
        tensor.__dlpack__(max_version=(1, 0))


def copied(array):
    with dlw.from_dlpack(array, copy=True) as tensor:
        np.from_dlpack(tensor, **({} if OLD_NUMPY else {"copy": True}))


def viewed(array):
    with dlw.from_buffer(array) as tensor:
        memoryview(tensor).release()
        np.asarray(tensor)


def outlived(array):
    with dlw.from_dlpack(array) as tensor:
        return np.from_dlpack(dlw.from_dlpack(tensor))


def lent(array):
    _core._take(lend(array)).release()


EXCHANGES = (versioned, legacy, legacy_producer, left_alone, copied, viewed, outlived)
EXCHANGES += (lent,)


def refused_dtype(array):
    with pytest.raises(BufferError):
        dlw.from_dlpack(BIG_ENDIAN)


def refused_buffer(array):
    with pytest.raises(BufferError):
        dlw.from_buffer(BIG_ENDIAN)


def refused_device(array):
    with dlw.from_buffer(array) as tensor, pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))


def refused_later(array):
    tensor = dlw.from_dlpack(array)
    tensor.release()
    with pytest.raises(dlw.ReleasedError):
        np.from_dlpack(tensor)


def refused_capsule(array):
    capsule = array.__dlpack__()
    dlw.from_dlpack(capsule).release()
    with pytest.raises(ValueError, match="consumed"):
        dlw.from_dlpack(capsule)


BIG_ENDIAN = np.zeros(3, ">i4")
REFUSALS = (refused_dtype, refused_buffer, refused_device)
REFUSALS += (refused_later, refused_capsule)


def memory():
    """Bytes that this process has in memory; inside Pyodide, that wasm memory has."""
    if IN_PYODIDE:
        import pyodide_js

        return pyodide_js._module.HEAPU8.length
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fill_memory():
    """Wasm memory has holes that were freed before, and that a leak would fill first."""
    blocks = []
    for size in (1 << 18, 1 << 14, 1 << 11) if IN_PYODIDE else ():
        for _ in range(10_000):
            blocks.append(np.empty(size, np.uint8))
            if blocks[-1].ctypes.data > memory() - 3 * size:
                break
    return blocks


def counts(array):
    """(references, managed tensors, objects, allocations): what must not grow."""
    gc.collect()
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    return sys.getrefcount(array), dlw.live_tensors(), objects, blocks


def exchange(array, times, ways):
    for _ in range(times):
        for way in ways:
            way(array)


@pytest.mark.skipif(
    not IN_PYODIDE and not Path("/proc/self/statm").exists(),
    reason="this system has no /proc that tells how much memory a process has",
)
@pytest.mark.parametrize("ways", [EXCHANGES, REFUSALS], ids=["exchanges", "refusals"])
def test_million_exchanges_leave_nothing(ways):
    array = np.arange(6.0)
    exchange(array, 1000, ways)
    before = counts(array)
    for _ in range(ROUNDS):
        filling = fill_memory()
        start = memory()
        exchange(array, EACH, ways)
        grown = memory() - start
        del filling
        if grown < BYTES:
            break
    references, live, objects, blocks = counts(array)
    assert (references, live) == before[:2]
    assert objects - before[2] < OBJECTS
    assert blocks - before[3] < OBJECTS
    assert grown < BYTES
