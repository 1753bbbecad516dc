"""Who lets go of what, and when: cycles, finalizers, threads."""

import copy
import gc
import importlib
import pickle
import random
import sys
import threading
import weakref
from typing import Any

import numpy as np
import producers
from producers import NUMPY, Act, Bytes
from world import (
    Elements,
    Export,
    Held,
    World,
    must,
)

import dlpack_web as dlw
from dlpack_web import _core
from operations.sharing import CAPSULES, SHARING
from operations.steps import hostile, operation

# --- lifetimes ----------------------------------------------------------------------------


@operation(16)
def release(world: World, rng: random.Random) -> None:
    if world.tensors:
        world.release(rng.choice(world.tensors))


@operation(16)
def drop(world: World, rng: random.Random) -> None:
    if world.tensors:
        held = world.tensors.pop(rng.randrange(len(world.tensors)))
        world.changes += 1
        del held.tensor


@operation(6)
def drop_view(world: World, rng: random.Random) -> None:
    if world.views:
        export = world.views.pop(rng.randrange(len(world.views)))
        world.changes += 1
        if isinstance(export.what, memoryview) and rng.random() < 0.5:
            export.what.release()
        del export.what


class Dies:
    """Something with a finalizer."""

    def __init__(self, act: Act, rng: random.Random) -> None:
        self.act, self.rng = act, random.Random(rng.random())

    def __del__(self) -> None:
        self.act(self.rng)


@operation(8)
def make_cycle(world: World, rng: random.Random) -> None:
    """Memory whose owner refers to a tensor over it, with views, finalizers, others."""
    owner: Any = Bytes(rng.randbytes(5))
    owner.tensor = dlw.from_buffer(owner)
    if rng.random() < 0.5:
        owner.view = memoryview(owner.tensor)
    if rng.random() < 0.4:
        owner.dies = Dies(hostile(world), rng)
    if rng.random() < 0.3:
        owner.more = [owner.tensor[1:], np.asarray(owner.tensor[2:])]
    if rng.random() < 0.3:
        owner.seen = _watch(world, owner.tensor, rng)
    if rng.random() < 0.2:
        owner.tensor.release()
    if rng.random() < 0.3:  # alive, through the tensor alone
        memory = Elements(None, np.zeros(0, np.int64), dlw.DType("uint8"))
        world.views.append(
            Export(
                memoryview(owner.tensor) if not owner.tensor.released else None, memory
            )
        )
    if rng.random() < 0.3:
        world.kept.append(owner)
    _uncut(world, owner)


class Gives:
    """An exporter written in Python whose memory goes when CPython takes it apart."""

    def __init__(self, rng: random.Random) -> None:
        self.memory = Bytes(rng.randbytes(300))

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.memory)


def _looks(world: World) -> Act:
    """Looks at all tensors that are alive, and their elements."""

    def act(rng: random.Random) -> None:
        if not world.quiet:
            inspect(world, rng)

    return act


@operation(6)
def make_tangle(world: World, rng: random.Random) -> None:
    """Garbage at once, or once the last reference goes: owners of memory, tensors over it
    and over each other, views and things with finalizers, that refer to each other."""
    nodes: list[list[Any]] = []  # [object, owner of its memory, has views]
    lists: list[Any] = [[]]
    for _ in range(rng.randint(2, 10)):
        how = rng.randrange(6)
        shared = [node for node in nodes if node[1] is not None and not node[2]]
        if how == 0:
            lists.append([])
        elif how == 1:
            owner = Gives(rng)
            nodes.append([dlw.from_buffer(owner), owner, False])
        elif how == 2 and shared:
            # In the place of the older one: the collector sees no cycles through two.
            older = rng.choice(shared)
            nodes = [node for node in nodes if node is not older]
            nodes.append([dlw.from_dlpack(older[0]), older[1], False])
        elif how == 3 and shared:
            viewed = rng.choice(shared)
            viewed[2] = True
            nodes.append([memoryview(viewed[0]), None, True])
        elif how == 4:
            act = rng.choice([_looks(world), hostile(world)])
            nodes.append([Dies(act, rng), None, False])
        elif how == 5:
            struct = producers.struct(rng, producers.nothing)
            struct.obj.act = rng.choice([_looks(world), hostile(world)])
            world.producers.append(struct.obj)
            if struct.aligned:
                nodes.append([dlw.from_dlpack(struct.obj), None, False])
    for node in nodes:
        rng.choice(lists).append(node[0])
        if node[1] is not None:
            node[1].refers = rng.choice(lists)
    for each in lists:
        rng.choice(lists).append(each)
    if rng.random() < 0.5:
        world.kept.append(rng.choice(lists))


def _uncut(world: World, owner: Any) -> None:
    """Arrays have holds of their own, which the collector cannot see into: such a cycle
    would live for ever, so that it is kept to be cut."""
    if hasattr(owner, "more"):
        world.kept.append(Cut(owner))


class Cut:
    """Cuts a cycle when it dies."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __del__(self) -> None:
        vars(self.owner).clear()


def _watch(world: World, tensor: dlw.Tensor, rng: random.Random) -> Any:
    act, own = hostile(world), random.Random(rng.random())
    return weakref.ref(tensor, lambda _: act(own))


@operation(5, on="any")
def watch(world: World, rng: random.Random, held: Held) -> None:
    """A weak reference whose callback does something."""
    world.kept.append(_watch(world, held.tensor, rng))


@operation(4)
def forget_kept(world: World, rng: random.Random) -> None:
    if world.kept:
        world.changes += 1
        del world.kept[rng.randrange(len(world.kept))]


@operation(5)
def collect(world: World, rng: random.Random) -> None:
    world.changes += 1
    gc.collect(rng.choice([0, 1, 2]))


@operation(3)
def set_threshold(world: World, rng: random.Random) -> None:
    gc.set_threshold(*rng.choice([(1, 1, 1), (700, 10, 10), (5, 2, 2)]))


@operation(3)
def inspect(world: World, rng: random.Random) -> None:
    report = world.attempt(lambda: dlw.inspect({"world": list(world.tensors)}))
    repr(report), report._repr_html_(), report.since(report)
    found = [row.ref() for row in report.tensors]
    for tensor in found:  # also those that are garbage, if this is a deleter
        if tensor is None or tensor.released or not tensor.device.is_host:
            continue
        world.attempt(tensor.tobytes, dlw.ReleasedError)
    del report, found
    alive = world.attempt(_core._alive)
    must(all(not tensor.released for tensor in alive), "a released one is alive")


@operation(2, on="any")
def pass_by_value(world: World, rng: random.Random, held: Held) -> None:
    call: Any = rng.choice([copy.copy, copy.deepcopy, pickle.dumps, lambda t: t + 1])
    must(world.attempt(lambda: call(held.tensor), TypeError) is None, call)


@operation(1)
def import_again(world: World, rng: random.Random) -> None:
    name = rng.choice(
        ["colorsys", "chunk_of_nothing", "this_is_not_there", "dlpack_web"]
    )
    if name == "colorsys":
        sys.modules.pop(name, None)
    world.attempt(lambda: importlib.import_module(name), ImportError)


# --- threads ------------------------------------------------------------------------------


@operation(2, on="host")
def run_threads(world: World, rng: random.Random, held: Held) -> None:
    """Several that share, copy, view and release, at once."""
    if world.depth > 0:
        return
    tensor, errors, seeds = held.tensor, [], [rng.random() for _ in range(4)]
    start = threading.Barrier(len(seeds))

    def work(seed: float) -> None:
        own = random.Random(seed)
        ways = [*SHARING, *CAPSULES, lambda t: dlw.from_dlpack(t, copy=True), repr]
        ways += [memoryview] if held.elements.dtype in NUMPY else []
        mine: Any = []
        start.wait(timeout=60)
        try:
            for _ in range(12):
                mine.append(own.choice(ways)(tensor))
                if own.random() < 0.5:
                    mine.pop(own.randrange(len(mine)))
                if own.random() < 0.2:
                    gc.collect(0)
            for each in mine:
                if isinstance(each, dlw.Tensor):
                    each.release()
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(repr(error))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    world.quiet = True
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
        world.attempt(lambda: _run_all(threads), garbage=False)
    finally:
        world.quiet = False
        sys.setswitchinterval(interval)
    must(not errors, "in threads:", errors)


def _run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        must(not thread.is_alive(), "a thread hangs")
