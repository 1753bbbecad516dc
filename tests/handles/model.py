#!/usr/bin/env python3
"""The policy of handles (wasm/handles.h) as a model: it makes random sequences of operations on tiny
tables and what each must give. Tests of C and JavaScript replay vectors.json, which this writes."""

import json
import random
from collections import deque
from pathlib import Path

SLOT_BITS, GENERATION_BITS, FREE = 4, 3, 4  # so that both ends are reached often
SLOTS, GENERATIONS = 1 << SLOT_BITS, 1 << GENERATION_BITS
# A stale handle is refused for as many further ones at least: each generation of its slot but the
# first takes a handle of each slot that stays free, and one of its own.
REFUSED = (GENERATIONS - 1) * (FREE + 1)
VECTORS = Path(__file__).with_name("vectors.json")


class Model:
    def __init__(self):
        self.generations = [0]  # of the slots that exist; 0 is never used
        self.free = deque()
        self.live = set()

    def add(self):
        """A handle, or None in a full table."""
        if len(self.live) == SLOTS - 1 - FREE:
            return None
        if len(self.free) > FREE:
            slot = self.free.popleft()
        else:
            slot = len(self.generations)
            self.generations.append(0)
        handle = slot | self.generations[slot] << SLOT_BITS
        self.live.add(handle)
        return handle

    def take(self, handle):
        """Whether the handle was that of a slot in use, which is free now."""
        if handle not in self.live:
            return False
        self.live.remove(handle)
        slot = handle % SLOTS
        self.generations[slot] = (self.generations[slot] + 1) % GENERATIONS
        self.free.append(slot)
        return True


def operations(seed, count=2500):
    """[-1, handle or 0] is an add, and what it gives; [handle, 1 or 0] is a look-up and then a
    release of a handle, and whether it is one in use."""
    choose = random.Random(seed)
    model, stale, adds = Model(), {}, 0  # stale: adds when the handle was released
    busy = 0.5
    for step in range(count):
        if step % 16 == 0:
            busy = choose.choice((0.3, 0.5, 0.7, 0.95))
        if choose.random() < busy:
            handle = model.add()
            if handle is not None:
                adds += 1
                assert 0 < handle < SLOTS * GENERATIONS
                assert adds - stale.pop(handle, -REFUSED) > REFUSED, (
                    "refused for too few adds"
                )
            yield [-1, handle or 0]
        else:
            known = [*sorted(model.live), *stale, choose.randrange(1 << 32)]
            handle = choose.choice(
                known if choose.random() < 0.2 else sorted(model.live) or [0]
            )
            taken = model.take(handle)
            if taken:
                stale[handle] = adds
            yield [handle, int(taken)]
    assert adds > 4 * SLOTS * GENERATIONS


def vectors():
    sizes = {"slotBits": SLOT_BITS, "generationBits": GENERATION_BITS, "free": FREE}
    return {"sizes": sizes, "sequences": [list(operations(seed)) for seed in range(2)]}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), separators=(",", ":")) + "\n")
