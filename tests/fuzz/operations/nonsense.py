"""Calls that mean nothing: they raise what one expects, and nothing breaks."""

import contextlib
import itertools
import random
from collections.abc import Callable
from typing import Any

import bridge_calls as bridge
import numpy as np
from producers import Act
from world import (
    Hostile,
    World,
    Wrong,
    clear_pending,
    release_handle,
)

import dlpack_web as dlw
from dlpack_web import _core
from operations.steps import HOSTILE, hostile, operation

# --- nonsense -----------------------------------------------------------------------------

JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2,
    3,
    2**31,
    -(2**31),
    2**63,
    -(2**63),
    2**70,
    1.5,
    float("nan"),
    "",
    "cpu",
    "cpu:0",
    "webgpu",
    "webgpu:0",
    "webgpu:x",
    "float32",
    "uint4x3",
    "int7",
    "float32x0",
    "gpu",
    b"bytes",
    (),
    (1, 0),
    (15, 0),
    (1, 2, 3),
    (2, -1),
    (-1, -1),
    (0,),
    (2**62, 2**62),
    (2**70, 0),
    (None,),
    ("a",),
    [2, 3],
    {},
    {1: 2},
    set(),
    object(),
    int,
    float,
    dict,
    ...,
    slice(None),
    slice(2**70),
    slice("a"),
    (..., ...),
    np.float32,
    np.int64(3),
    np.array([1]),
    1j,
    range(3),
    itertools.count,
    Hostile,
    dlw.Device(1, 0),
    dlw.Device(15, 3),
    NotImplemented,
]


class Index:
    """An int that does something when it is asked for its value, or is none."""

    def __init__(self, act: Act, rng: random.Random) -> None:
        self.act, self.rng = act, random.Random(rng.random())

    def __index__(self) -> int:
        self.act(self.rng)
        return self.rng.choice([0, 1, 2, -1])

    def __bool__(self) -> bool:
        self.act(self.rng)
        return True


def _borrow_and_release(x: Any) -> None:
    address = bridge.borrow(x, 1)
    if address:
        release_handle(bridge.struct_of(address)[1])


def _awaited(reading: Any) -> None:
    """Nothing here waits."""
    with contextlib.suppress(StopIteration):
        reading.send(None)
    reading.close()


@operation(16)
def call_with_junk(world: World, rng: random.Random) -> None:
    held = rng.choice(world.tensors) if world.tensors else None
    tensor: Any = held.tensor if held is not None else dlw.empty(3)

    def junk() -> Any:
        how = rng.random()
        if how < 0.1:
            return Index(hostile(world), rng)
        if how < 0.15:
            return (Index(hostile(world), rng), Index(hostile(world), rng))
        if how < 0.2 and world.tensors:
            return rng.choice(world.tensors).tensor
        return rng.choice(JUNK)

    def some(**values: Any) -> dict[str, Any]:
        return {name: x for name, x in values.items() if rng.random() < 0.5}

    a, b, c = junk(), junk(), junk()
    calls: list[Callable[[], Any]] = [
        lambda: tensor.reshape(a),
        lambda: tensor.permute_dims(a),
        lambda: tensor[a],
        lambda: tensor[a, b],
        lambda: tensor.to_device(a, **some(copy=b, dtype=c)),
        lambda: tensor.write(a, convert=b),
        lambda: _awaited(tensor.to_host(a)),
        lambda: _awaited(dlw.to_host(a, tensor)),
        lambda: tensor.__array__(a, copy=b),
        lambda: tensor.__dlpack__(**some(stream=a, max_version=b, dl_device=c, copy=a)),
        lambda: tensor.__dlpack__(a),
        lambda: getattr(tensor, str(a)),
        lambda: a in tensor,
        lambda: tensor == a,
        lambda: tensor.__buffer__(a),
        lambda: dlw.from_dlpack(a, **some(device=b, copy=c, dtype=b)),
        lambda: dlw.from_dlpack(tensor, **some(device=b, copy=c, dtype=a)),
        lambda: dlw.from_buffer(a),
        lambda: dlw.empty(a, **some(dtype=b, device=c)),
        lambda: dlw.DType(a),
        lambda: dlw.from_js(a),
        lambda: dlw.to_js(a),
        lambda: dlw.from_gpu_buffer(a, b, c, device=a),
        lambda: dlw.inspect(a),
        lambda: _core._take(a) if a != 0 and not isinstance(a, Index) else None,
        lambda: _core._view(tensor, a, b, c),
        lambda: _core._view(tensor, (a, b), (b, c), c),
        lambda: _core._typed(a, 1, b),
        lambda: _core._convert(tensor, a, b),
        lambda: _core._raw(a),
        lambda: _core._empty(a, b, c),
        lambda: _core._hold(a),
        lambda: _core._arguments(tensor, a, b),
        lambda: _core._arguments(*[a] * 33),
        lambda: _core._from_dlpack_on(tensor, a, b, c),
        lambda: setattr(tensor, "_js", a),
        lambda: dlw.Tensor(a),
        lambda: _borrow_and_release(a),
    ]
    call = rng.choice(calls)
    allowed: tuple[type[BaseException], ...] = (
        BufferError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        MemoryError,
        dlw.ReleasedError,
        *HOSTILE,
    )
    try:
        made = world.attempt(call, *allowed)
    except Wrong:
        raise
    except BaseException as error:
        raise Wrong(f"junk {a!r}, {b!r}, {c!r} raised {error!r}") from error
    del made
    clear_pending()
