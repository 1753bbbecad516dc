"""Views, and what Python makes of tensors."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from producers import NUMPY
from world import (
    Elements,
    Export,
    Held,
    World,
    must,
)

import dlpack_web as dlw
from dlpack_web._layout import views
from operations.steps import operation

# --- views --------------------------------------------------------------------------------


def _add_view(
    world: World, held: Held, places: Any, call: Callable[[], Any], *refuses: Any
) -> None:
    tensor = world.attempt(call, *refuses)
    if tensor is not None:
        world.add(tensor, replace(held.elements, places=places))


@operation(12, on="host")
def index(world: World, rng: random.Random, held: Held) -> None:
    places, items = held.elements.places, []
    for extent in places.shape[: rng.randint(0, places.ndim)]:
        if rng.random() < 0.4:
            items.append(
                rng.randint(-extent - (rng.random() < 0.1), extent - (extent > 0))
            )
        else:
            far = rng.choice([2**70, -(2**70), None, 1, 0, -1, -2, 3])
            items.append(
                slice(
                    far,
                    rng.choice([None, None, 2, -1]),
                    rng.choice([None, 2, -1, 2**70]),
                )
            )
    for _ in range(rng.choice([0, 0, 0, 1])):
        items.insert(rng.randint(0, len(items)), rng.choice([None, ...]))
    if places.ndim + items.count(None) > 64:
        return
    key = tuple(items)
    try:
        wanted = places[key]
    except IndexError:
        must(world.attempt(lambda: held.tensor[key], IndexError) is None, key)
        return
    # Packed elements may begin within a byte, which no tensor can say.
    refuses = [BufferError] if held.elements.packed else []
    _add_view(world, held, np.asarray(wanted), lambda: held.tensor[key], *refuses)


@operation(6, on="host")
def permute(world: World, rng: random.Random, held: Held) -> None:
    places = held.elements.places
    axes = rng.sample(range(places.ndim), places.ndim)
    _add_view(
        world, held, places.transpose(axes), lambda: held.tensor.permute_dims(axes)
    )


@operation(8, on="host")
def reshape(world: World, rng: random.Random, held: Held) -> None:
    places = held.elements.places
    rest, shape = places.size, []
    while rest > 1 and len(shape) < 4:
        shape.append(rng.choice([n for n in range(1, rest + 1) if rest % n == 0]))
        rest //= shape[-1]
    shape.append(rest)
    rng.shuffle(shape)
    if rng.random() < 0.3 and rest:
        shape[rng.randrange(len(shape))] = -1
    strides = held.tensor.strides
    whole = views.is_row_major(places.shape, strides)
    refuses = [] if whole else [BufferError]
    _add_view(
        world, held, places.reshape(shape), lambda: held.tensor.reshape(shape), *refuses
    )


# --- what Python makes of tensors ---------------------------------------------------------


def _as_bytes(view: Any) -> bytes:
    return np.asarray(view).tobytes()


def _expected_bytes(elements: Elements) -> bytes:
    """As NumPy has it: at least a byte for each lane."""
    lanes, bits = elements.dtype.lanes, elements.dtype.bits
    if bits >= 8 or elements.padded:
        return elements.bytes()
    return bytes(
        number >> lane * bits & (1 << bits) - 1
        for number in elements.ints()
        for lane in range(lanes)
    )


@operation(12, on="host")
def view_as_array(world: World, rng: random.Random, held: Held) -> None:
    elements = held.elements
    name = elements.dtype.name
    ways: list[Callable[[dlw.Tensor], Any]] = [
        lambda t: t.numpy(),
        lambda t: t.__array__(),
        lambda t: t.to_numpy(),
    ]
    if name in NUMPY:
        ways += [np.asarray, memoryview, np.from_dlpack]
    way, before = rng.choice(ways), world.changes
    wanted = _expected_bytes(elements)
    crowded = elements.places.ndim == 64 and elements.dtype.lanes > 1
    refuses = [BufferError] if crowded else []
    view = world.attempt(lambda: way(held.tensor), *refuses)
    if view is None:
        return
    if world.changes == before:
        found = _as_bytes(view)
        must(found == wanted, way, held.tensor, "gives", found, "and not", wanted)
    if rng.random() < 0.5:
        world.views.append(Export(view, elements))


@operation(8, on="host")
def make_bytes(world: World, rng: random.Random, held: Held) -> None:
    before, wanted = world.changes, held.elements.bytes()
    found = world.attempt(held.tensor.tobytes)
    if found is not None and world.changes == before:
        must(found == wanted, held.tensor, "as bytes", found, "and not", wanted)


@operation(8, on="host")
def write_by_array(world: World, rng: random.Random, held: Held) -> None:
    """One element over another through an ndarray."""
    if held.elements.dtype not in NUMPY:
        return
    elements = held.elements
    array = world.attempt(lambda: np.asarray(held.tensor))
    if array is None or not array.size:
        return
    must(array.flags.writeable != elements.read_only, "writeable", elements)
    if elements.read_only:
        return
    to, at = (tuple(rng.randrange(n) for n in array.shape) for _ in range(2))
    assert elements.memory is not None
    value = elements.memory.read(int(elements.places[at]), elements.bits)
    world.changes += 1
    raw = array[(*to, None)].view(np.uint8)
    raw[:] = np.frombuffer(value.to_bytes(elements.bits // 8, "little"), np.uint8)
    elements.memory.write(int(elements.places[to]), elements.bits, value)


@operation(8)
def write(world: World, rng: random.Random) -> None:
    target, source = world.some(rng), world.some(rng)
    if target is None or source is None:
        return
    same = (target.elements.dtype, target.elements.places.shape, target.elements.padded)
    alike = [
        held
        for held in world.tensors
        if not held.released
        and held.elements.memory is not None
        and (held.elements.dtype, held.elements.places.shape, held.elements.padded)
        == same
    ]
    source = rng.choice([*alike, source])
    into, values = target.elements, source.elements.ints()
    tensor = target.tensor
    fits = source in alike and not into.read_only
    fits = fits and views.is_row_major(tensor.shape, tensor.strides)
    world.changes += 1
    done = world.attempt(
        lambda: (tensor.write(source.tensor), True)[1],
        *([] if fits else [BufferError]),
        garbage=False,
    )
    must(bool(done) == fits, "wrote", done, "although", fits)
    if not done:
        return
    assert into.memory is not None
    for place, value in zip(into.places.ravel().tolist(), values, strict=True):
        into.memory.write(place, into.bits, value)
    world.check()


@operation(3)
def show(world: World, rng: random.Random) -> None:
    held = rng.choice(world.tensors) if world.tensors else None
    if held is None:
        return
    call = rng.choice(
        [repr, str, lambda t: t._repr_html_(), lambda t: t._repr_mimebundle_()]
    )
    world.attempt(lambda: call(held.tensor), dlw.ReleasedError)


@operation(3, on="host")
def ask_for_numbers(world: World, rng: random.Random, held: Held) -> None:
    call = rng.choice([int, float, complex, bool, len, list, np.array])
    made = world.attempt(
        lambda: call(held.tensor), TypeError, ValueError, BufferError, OverflowError
    )
    del made
