"""driver.py: random operations of the Python API and of the functions for JavaScript, against
a model. Under ASan: `make fuzz` runs it.

  driver.py --seed N --seconds S [--leave]   sequences until the time is over
  driver.py --sequence FILE                  one, of [operation, seed] pairs in JSON

A sequence is printed as JSON before it is run. With --leave the last one is not cleaned up:
Python's end has to.
"""

import argparse
import ctypes
import faulthandler
import gc
import importlib
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "native")]

import bridge_calls
import operations
from world import World

import dlpack_web as dlw

LONGEST = 60  # operations of a sequence
DROP = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


def run(sequence: list[tuple[str, int]], *, leave: bool = False) -> World:
    world, baseline = World(), dlw.live_tensors()

    def unraisable(args: Any) -> None:
        kind = args.exc_type.__name__
        expected = kind in ("Hostile", "HostileExit")
        world.unraisable.append(kind if expected else f"{kind}: {args.exc_value}")

    @DROP
    def dropped(gpu: int) -> None:
        world.gpu[gpu] += 1

    sys.unraisablehook = unraisable
    importlib.import_module(
        "dlpack_web._backends.model.buffers.table"
    )  # else it would listen later
    bridge_calls.on_drop(ctypes.cast(dropped, ctypes.c_void_p))
    world.kept_drop = dropped  # type: ignore[attr-defined]
    gc.disable()
    for name, seed in sequence:
        rng = random.Random(seed)
        operations.OPERATIONS[name](world, rng)
        world.check()
    if not leave:
        world.end(random.Random(len(sequence)), baseline)
    gc.set_threshold(700, 10, 10)
    return world


def keep(world: World) -> None:
    """Until Python ends: it is part of what is taken apart then."""
    sys.modules["kept_world"] = world  # type: ignore[assignment]


def sequence_of(rng: random.Random) -> list[tuple[str, int]]:
    count = rng.randint(1, LONGEST)
    return [(operations.choose(rng), rng.getrandbits(32)) for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--sequence", type=Path)
    parser.add_argument("--leave", action="store_true")
    options = parser.parse_args()
    faulthandler.enable()
    gc.collect()
    gc.freeze()
    if options.sequence:
        keep(run(json.loads(options.sequence.read_text()), leave=options.leave))
        return
    rng, end = random.Random(options.seed), time.monotonic() + options.seconds
    sequences = done = 0
    while time.monotonic() < end:
        sequence = sequence_of(rng)
        print(json.dumps(sequence), flush=True)
        run(sequence)
        sequences, done = sequences + 1, done + len(sequence)
    print(f"done: {sequences} sequences, {done} operations", flush=True)
    if options.leave:
        sequence = sequence_of(rng)
        print("leave", json.dumps(sequence), flush=True)
        keep(run(sequence, leave=True))


if __name__ == "__main__":
    main()
