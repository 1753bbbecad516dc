"""What tests of Python have in common, in CPython and in Pyodide: for a conftest.py."""

import gc
import json
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web import _core

DTYPES = json.loads((Path(__file__).parents[1] / "dtypes.json").read_text("utf-8"))
UNDER_ASAN = "/asan/" in str(_core.__file__)
IN_PYODIDE = sys.platform == "emscripten"
if not IN_PYODIDE:  # jobs in a shell's background ignore interrupts
    signal.signal(signal.SIGINT, signal.default_int_handler)
# NumPy before 2.1 speaks DLPack before 1.0: no versions, no copy=, nothing read-only.
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
needs_new_numpy = pytest.mark.skipif(
    OLD_NUMPY, reason="NumPy before 2.1 speaks DLPack before 1.0"
)


def arrays_of(tensor):
    """What NumPy makes of a tensor, by each of its ways that take it."""
    yield np.asarray(tensor)
    if not (OLD_NUMPY and tensor.read_only):
        yield np.from_dlpack(tensor)


def run(coroutine):
    """The result of a coroutine that never waits, as those of files that Python sees."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def in_threads(function, given):
    """Calls it with each at once, in threads of their own; raises what one of them raised."""
    barrier, raised = threading.Barrier(len(given), timeout=60), []

    def main(one):
        barrier.wait()
        try:
            function(one)
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    threads = [threading.Thread(target=main, args=(one,)) for one in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if raised:
        raise raised[0]


def settle(live):
    """As many tensors live. A collection takes a second beside pandas under ASan, so that it
    is for those in cycles."""
    if dlw.live_tensors() != live:
        gc.collect()
    assert dlw.live_tensors() == live, "a managed tensor leaked"


def examples(count):
    """How many examples Hypothesis tries, always the same ones: all with WHOLE=1. Under ASan each
    takes ten times as long."""
    return count if os.environ.get("WHOLE") and not UNDER_ASAN else count // 5


def pytest_generate_tests(metafunc):
    """`dtype`: every row of tests/dtypes.json; `np_row`: those that NumPy has."""
    rows = {
        "dtype": DTYPES,
        "np_row": [row for row in DTYPES if row["numpy"] == "numpy"],
        "other_row": [row for row in DTYPES if row["numpy"] != "numpy"],
        "sub_byte_row": [row for row in DTYPES if row["bits"] < 8],
        "packed_row": [row for row in DTYPES if row["bits"] % 8],
        # Others whose elements may have bytes of their own.
        "other_array_row": [
            row
            for row in DTYPES
            if row["numpy"] != "numpy" and (row["bits"] < 8 or row["bits"] % 8 == 0)
        ],
    }
    own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    for name, chosen in rows.items():
        if name in metafunc.fixturenames and not any(name in each for each in own):
            ids = [row["name"] for row in chosen]
            metafunc.parametrize(name, chosen, ids=ids)


def pytest_collection_finish():
    """What is there by now stays: the collections below need not look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_leaks():
    """Every test leaves as many live tensors as it found."""
    before = dlw.live_tensors()
    yield
    settle(before)


@pytest.fixture(scope="session")
def host_python():
    """For tests of what only a CPython with processes and compilers can show."""
    if IN_PYODIDE:
        pytest.skip("Pyodide has no subprocesses, threads or compilers")
    return sys.executable
