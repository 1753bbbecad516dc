"""Random views of views, and what NumPy makes of them: tests/native/tensor/test_views.py plays them beside NumPy,
and tests/js/core/views.test.mjs reads what chains() tells."""

import random

import numpy as np


def random_index(rng, shape, more=True):
    """more: with ... and None, and not for all axes, which JavaScript has no words for."""
    items = []
    for extent in shape:
        if more and rng.random() < 0.15:
            break
        if rng.random() < 0.15 and extent:
            items.append(rng.randrange(-extent, extent))
        else:
            bounds = [None] * extent + [*range(-extent - 2, extent + 3)]
            step = rng.choice([None, 1, 2, -1, -3])
            items.append(slice(rng.choice(bounds), rng.choice(bounds), step))
    if more:
        if rng.random() < 0.3:
            items.insert(rng.randint(0, len(items)), ...)
        for _ in range(rng.choice([0, 0, 1, 2])):
            items.insert(rng.randint(0, len(items)), None)
        if len(items) == 1 and rng.random() < 0.5:
            return items[0]
    return tuple(items)


def random_reshape(rng, array):
    """A shape of as many elements, with or without a -1."""
    rest, shape = array.size, []
    while rest > 1 and len(shape) < 4:
        divisors = [n for n in range(1, rest + 1) if rest % n == 0]
        shape.append(rng.choice(divisors))
        rest //= shape[-1]
    shape.append(rest)
    if rng.random() < 0.4:
        shape[rng.randrange(len(shape))] = -1
    return tuple(shape)


def random_axes(rng, ndim):
    axes = rng.sample(range(ndim), ndim)
    return tuple(axis - rng.choice([0, ndim]) for axis in axes)


def random_shape(rng):
    return [rng.choice([0, 1, *[2, 3, 4, 6] * 3]) for _ in range(rng.randint(0, 4))]


def chains(count):
    """For each seed a shape of 0, 1, 2…, and its steps: what one `does`, what it is `given`, its shape and elements then,
    and whether it `copies`, as there is no such view."""
    for seed in range(count):
        rng = random.Random(seed)
        shape = random_shape(rng)
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        steps = []
        for _ in range(6):
            what = rng.choice(["slice", "permute", "reshape"])
            copies = False
            if what == "slice":
                indices = [random_index(rng, array.shape, more=False) for _ in range(9)]
                # Most have elements, so that those after them have.
                index = max(indices[: rng.randint(1, 9)], key=lambda i: array[i].size)
                array = np.asarray(array[index])
                given = [
                    [each.start, each.stop, each.step or 1]
                    if isinstance(each, slice)
                    else each
                    for each in index
                ]
            elif what == "permute":
                given = random_axes(rng, array.ndim)
                array = array.transpose(given)
            else:
                given = random_reshape(rng, array) if array.size else (0, 3)
                view = array.reshape(given)
                copies = array.size > 0 and not np.shares_memory(view, array)
                array = view
            found = {"shape": array.shape, "values": array.ravel().tolist()}
            steps.append({"does": what, "given": given, "copies": copies, **found})
        yield {"shape": shape, "steps": steps}
