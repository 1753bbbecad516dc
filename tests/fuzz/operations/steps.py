"""The operations by name, and what producers that misbehave do with them."""

import gc
import random
from collections.abc import Callable

from producers import Act
from world import (
    Hostile,
    HostileExit,
    World,
)

type Operation = Callable[..., None]

OPERATIONS: dict[str, Operation] = {}
WEIGHTS: dict[str, int] = {}
HOSTILE = (Hostile, HostileExit)
DEEPEST = 2  # operations within operations


def operation(weight: int, *, on: str = "") -> Callable[[Operation], Operation]:
    """Enters a function of the world and random numbers; with `on`, and of a tensor that
    is not released, on the host or of any device, without which it does nothing."""

    def enter(function: Operation) -> Operation:
        def with_tensor(world: World, rng: random.Random) -> None:
            held = world.some(rng, host=on == "host")
            if held is not None:
                function(world, rng, held)

        OPERATIONS[function.__name__] = with_tensor if on else function
        WEIGHTS[function.__name__] = weight
        return function

    return enter


def choose(rng: random.Random) -> str:
    return rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def hostile(world: World) -> Act:
    """Something unexpected: nothing, other operations, an exception."""

    def act(rng: random.Random) -> None:
        how = rng.random()
        if how < 0.3 or world.depth >= DEEPEST or world.quiet:
            return
        world.depth += 1
        world.changes += 1
        collecting = gc.isenabled()
        try:
            for _ in range(rng.randint(1, 3)):
                OPERATIONS[choose(rng)](world, random.Random(rng.random()))
        finally:
            world.depth -= 1
            (gc.enable if collecting else gc.disable)()
        if how > 0.8:
            raise rng.choice(HOSTILE)("from inside")

    return act
