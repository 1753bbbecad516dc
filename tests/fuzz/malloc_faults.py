"""malloc_faults.py: every public operation while memory runs out, at each of its allocations:
once, and for good from there on; in the C core and what it calls, and anywhere.

  malloc_faults.py --seed N --seconds S   operations in random order until the time is over
  malloc_faults.py --only NAME [--n N]    one operation

It raises MemoryError, or succeeds where it can do without; nothing crashes or leaks, all
references are given back, and the same operation succeeds afterwards. What is run is printed
before it is, so that the last line tells what crashed.
"""

import argparse
import ctypes
import faulthandler
import gc
import random
import sys
import time
from array import array
from ctypes import c_void_p, pythonapi
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "native")]

import bridge_calls as bridge
from fault_cases import OPERATIONS
from fault_subjects import (
    ANYWHERE,
    FAULTS,
    FLOATS,
    GOOD,
    OUT_OF_MEMORY,
    Bridged,
    Exchanged,
    Lent,
    Owner,
    blocks,
    facts,
    failures,
    faulty_bridge,
    faulty_call,
    handle_of,
    settle,
)
from world import clear_pending, must

import dlpack_web as dlw

MOST = 2000  # allocations of an operation
HOWS = ["once", "for good", "once, anywhere", "for good, anywhere"]

# --- one operation ----------------------------------------------------------------------------


def _is_out_of_memory(error: BaseException, how: int) -> bool:
    """Others have words of their own for it: ctypes; NumPy, which drops what a request for
    a buffer raises and fails at what it tries next, for a Tensor at an array interface
    without an address; CPython, which loses the exception."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, ValueError):
        return str(error) == "cannot coerce scalar to array with size > 1"
    return bool(how & ANYWHERE) or "MemoryError" in str(error)


class Trial:
    def __init__(self, name: str) -> None:
        self.name = name
        self.make, self.call = OPERATIONS[name]
        self.unraisable: list[tuple[str, str]] = []
        self.expected: Any = None
        sys.unraisablehook = self._note
        for _ in range(3):
            self.run(0, 0)

    def _note(self, args: Any) -> None:
        self.unraisable.append((args.exc_type.__name__, str(args.exc_value)))

    def run(self, n: int, how: int) -> int:
        """How many allocations failed. Everything is checked but what may be cached."""
        live = dlw.live_tensors()
        subject = self.make()
        references = sys.getrefcount(subject)
        found: Any = None
        try:
            if isinstance(self.call, Bridged | Exchanged):
                result = self.call(subject, n, how)
            else:
                result = faulty_call(partial(self.call, subject), n, how)
            failed: int = failures()
            found = facts(result)
            self.expected = self.expected or found
            must(found == self.expected, self.name, n, found, "and not", self.expected)
            del result
        except (*OUT_OF_MEMORY, ValueError) as error:
            failed = failures()
            must(failed > 0, self.name, "raised", type(error), "for nothing")
            must(_is_out_of_memory(error, how), self.name, n, HOWS[how], repr(error))
        clear_pending()
        if isinstance(subject, Owner):
            vars(subject).clear()
        if found is None:
            must(sys.getrefcount(subject) <= references, self.name, "kept a reference")
        del subject
        if dlw.live_tensors() != live:
            gc.collect()
        settle()
        left = dlw.live_tensors() - live
        must(left == 0, self.name, n, HOWS[how], "left", left, "tensors")
        for kind, text in self.unraisable:
            must(kind == "MemoryError", self.name, n, HOWS[how], kind, text)
        self.unraisable.clear()
        return failed

    def attempt(self, n: int, how: int) -> bool:
        """Whether an allocation failed. Several times: each may keep some blocks for ever,
        in caches, but not more and more. (Where Python itself is out of memory, that is its
        own affair.)"""
        print(f"{self.name}: n={n} {HOWS[how]}", flush=True)
        failed = self.run(n, how)
        kept = array("q", [0] * 9)  # whose numbers are no blocks
        for i in range(0 if how & ANYWHERE else len(kept)):
            self.run(n, how)
            gc.collect()
            pythonapi.PyType_ClearCache()  # which keeps the names of methods
            kept[i] = blocks()
            if i >= 2 and kept[i] <= kept[i - 1]:
                break
        else:
            must(how & ANYWHERE, self.name, n, HOWS[how], "leaks blocks:", list(kept))
        self.run(0, 0)
        return failed > 0


def check_full_table() -> None:
    """A table of handles that cannot grow is used up to its last slot; then the hold that
    finds none is given back."""
    first, live = Lent(FLOATS), dlw.live_tensors()
    share = ctypes.cast(FAULTS.dlw_bridge_share, c_void_p)
    args = (ctypes.c_ssize_t * 6)(first.handle)
    handles: list[int] = []
    while address := faulty_bridge(share, args, 0, 2, GOOD):
        handles.append(handle_of(address))
        must(len(handles) < 1 << 20, "the table grows without memory")
    must(failures() > 0 and len(handles) > 256, len(handles), "handles")
    must(clear_pending() is MemoryError, "a full table")
    must(dlw.live_tensors() == live + len(handles), "a hold without a handle")
    for handle in handles:
        bridge.release(handle)


def try_one(name: str, n: int | None) -> int:
    """Each allocation of the operation in turn, or the n-th alone; how many were tried."""
    trial, count = Trial(name), 0
    for how in range(len(HOWS)):
        for which in [n] if n else range(1, MOST):
            count += 1
            if not trial.attempt(which, how):
                break
            must(which < MOST - 1, name, "allocates for ever")
    return count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="0: everything")
    parser.add_argument("--only")
    parser.add_argument("--n", type=int)
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    faulthandler.enable()
    rng = random.Random(options.seed)
    names = rng.sample(list(OPERATIONS), len(OPERATIONS))
    names = [name for name in names if name not in options.without]
    if options.only:
        names = [options.only]
    for name in names:  # whatever is made once, such as modules, is there
        Trial(name)
    FAULTS.dlw_faults_install()
    gc.collect()
    gc.freeze()
    check_full_table()
    end = time.monotonic() + options.seconds
    done = count = 0
    for name in names:
        if options.seconds and time.monotonic() > end:
            break
        count += try_one(name, options.n)
        done += 1
    print(f"done: {done} of {len(names)} operations, {count} failures")


if __name__ == "__main__":
    main()
