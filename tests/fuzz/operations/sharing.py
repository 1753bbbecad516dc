"""Tensors of producers, and of tensors."""

import random
from collections.abc import Callable
from ctypes import byref, c_void_p, cast, py_object, pythonapi
from dataclasses import replace
from typing import Any

import bridge_calls as bridge
import numpy as np
from forge import versioned
from producers import MAKERS, NUMPY, Source, Struct
from world import (
    API,
    Elements,
    Held,
    World,
    clear_pending,
    must,
)

import dlpack_web as dlw
from dlpack_web import _core
from dlpack_web._layout import views
from operations.exports import add_handle, uploaded
from operations.steps import HOSTILE, hostile, operation

# --- from producers -----------------------------------------------------------------------


def _source(world: World, rng: random.Random) -> Source:
    source = rng.choice(MAKERS)(rng, hostile(world))
    obj = source.obj
    inner = getattr(obj, "inner", getattr(obj, "producer", obj))
    if isinstance(inner, Struct):
        world.producers.append(inner)
    if source.elements.memory is not None:
        world.memories.append(source.elements.memory)
    return source


def _is_calm(source: Source) -> bool:
    """Whether nothing but a refusal can come of it."""
    return isinstance(source.obj, np.ndarray | bytes | bytearray | Struct)


@operation(40)
def share_a_producer(world: World, rng: random.Random) -> None:
    source = _source(world, rng)
    makes = [dlw.from_dlpack] * source.dlpack + [dlw.from_buffer] * source.buffer
    make: Any = rng.choice(makes)
    refuses = source.refuses if source.aligned else (BufferError, *source.refuses)
    tensor = world.attempt(lambda: make(source.obj), *HOSTILE, *refuses)
    if tensor is None:
        must(refuses or not _is_calm(source), "refused", source)
        return
    must(source.aligned, "misaligned", source)
    world.add(tensor, source.elements)


@operation(10)
def copy_a_producer(world: World, rng: random.Random) -> None:
    source = _source(world, rng)
    if not source.dlpack:
        return
    values = source.elements.ints()
    options: dict[str, Any] = rng.choice([{}, {"device": "cpu"}])
    tensor = world.attempt(
        lambda: dlw.from_dlpack(source.obj, copy=True, **options),
        *HOSTILE,
        *source.refuses,
    )
    if tensor is not None:
        world.add_copy(tensor, source.elements, values)
    else:
        must(source.refuses or not _is_calm(source), "refused", source)


@operation(10)
def borrow_a_producer(world: World, rng: random.Random) -> None:
    """As JavaScript does."""
    source, writable = _source(world, rng), rng.random() < 0.3
    address = world.attempt(lambda: bridge.borrow(source.obj, writable))
    if address == 0:
        error = clear_pending()
        assert error is not None
        allowed = (*HOSTILE, *source.refuses)
        if not source.aligned or (writable and source.elements.read_only):
            allowed = (*allowed, BufferError)
        must(issubclass(error, allowed), "borrowing raised", error, source)
        return
    must(source.aligned, "misaligned", source)
    must(not (writable and source.elements.read_only), "not writable", source)
    add_handle(world, address, source.elements)


@operation(8)
def make_empty(world: World, rng: random.Random) -> None:
    name = rng.choice([*NUMPY, "bfloat16", "uint4", "int1", "float6_e2m3fn", "uint2x3"])
    shape = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 4)))
    tensor = world.attempt(lambda: dlw.empty(shape, name))
    source = Elements(None, np.empty(shape, np.int64), dlw.DType(name))
    held = world.add_copy(tensor, source, None)
    must(tensor.strides == views._row_major(shape) and not tensor.read_only)
    if held.elements.places.size:
        must(_data(tensor) % 256 == 0, "aligned to 256 bytes")


def _data(tensor: Any) -> int:
    struct = versioned(tensor.__dlpack__(max_version=(1, 0)))
    address: int = struct.dl_tensor.data
    return address


# --- from tensors -------------------------------------------------------------------------


def _by_capsule(tensor: dlw.Tensor) -> dlw.Tensor:
    return dlw.from_dlpack(tensor.__dlpack__(max_version=(1, 0)))


def _by_legacy(tensor: dlw.Tensor) -> dlw.Tensor:
    return dlw.from_dlpack(tensor.__dlpack__())


def _by_exchange(tensor: dlw.Tensor) -> Any:
    managed, made = c_void_p(), c_void_p()
    must(API.from_object(tensor, byref(managed)) == 0)
    must(API.to_object(managed, byref(made)) == 0)
    result = cast(made, py_object).value
    pythonapi.Py_DecRef(py_object(result))
    return result


def _by_handle(tensor: dlw.Tensor) -> Any:
    address = bridge.borrow(tensor, 0)
    return _core._take(bridge.struct_of(address)[1])


SHARING: list[Callable[[dlw.Tensor], Any]] = [
    dlw.from_dlpack,
    lambda t: dlw.from_dlpack(t, copy=False),
    lambda t: t.to_device("cpu"),
    lambda t: dlw.from_dlpack(t, device="cpu"),
    lambda t: t[...],
    _core._hold,
    _by_handle,
]
CAPSULES: list[Callable[[dlw.Tensor], Any]] = [_by_capsule, _by_exchange]


@operation(20, on="host")
def share(world: World, rng: random.Random, held: Held) -> None:
    way, elements = rng.choice([*SHARING, *CAPSULES, _by_legacy]), held.elements
    said = elements.read_only and not elements.silent
    refused = way is _by_legacy and (said or elements.padded)
    tensor = world.attempt(
        lambda: way(held.tensor), *([BufferError] if refused else [])
    )
    if tensor is None:
        return
    must(not refused, "a legacy capsule cannot say that", elements)
    if way is _by_legacy:
        elements = replace(elements, read_only=True, silent=True)
    elif way in CAPSULES:
        elements = replace(elements, silent=False)
    world.add(tensor, elements)


@operation(8, on="host")
def make_copy(world: World, rng: random.Random, held: Held) -> None:
    ways: list[Callable[[dlw.Tensor], Any]] = [
        lambda t: dlw.from_dlpack(t, copy=True),
        lambda t: dlw.from_dlpack(t.__dlpack__(copy=True, max_version=(1, 0))),
        lambda t: t.to_device("cpu", copy=True),
        lambda t: dlw.from_dlpack(t.__dlpack__(max_version=(1, 0)), copy=True),
    ]
    way, values, before = rng.choice(ways), held.elements.ints(), world.changes
    tensor = world.attempt(lambda: way(held.tensor))
    if tensor is None:
        return
    calm = world.changes == before
    copied = world.add_copy(tensor, held.elements, values if calm else None)
    must(views.is_row_major(tensor.shape, tensor.strides), tensor, "is a copy")
    if copied.elements.places.size and calm:
        tail = copied.elements.places.size * copied.elements.bits % 8
        last = copied.elements.memory.shadow[-1]  # type: ignore[union-attr]
        must(not tail or last >> tail == 0, "bits behind the last element", last)


WAYS = {
    "float64": "float32",
    "float32": "float16",
    "float16": "float32",
    "int64": "int32",
    "uint64": "uint32",
    "complex128": "complex64",
}


CONVERTING: list[Callable[[dlw.Tensor, str], Any]] = [
    lambda t, dtype: t.to_device("cpu", dtype=dtype),
    lambda t, dtype: dlw.from_dlpack(t, dtype=dtype),
    lambda t, dtype: uploaded(t, dlw.DType(dtype), dlw.DType(dtype).itemsize),
]


@operation(6, on="host")
def make_converted(world: World, rng: random.Random, held: Held) -> None:
    if held.elements.dtype not in WAYS:
        return
    elements, wanted = held.elements, WAYS[held.elements.dtype]
    source = np.frombuffer(elements.bytes(), elements.dtype)
    with np.errstate(all="ignore"):
        expected = source.astype(wanted)
    fits = source.dtype.kind in "fc" or np.array_equal(expected, source)
    way, before = rng.choice(CONVERTING), world.changes
    refuses = [] if fits else [BufferError]
    made = world.attempt(lambda: way(held.tensor, wanted), *refuses, garbage=False)
    calm = world.changes == before
    if made is None:
        must(not fits or not calm, "not converted", source)
        return
    must(fits or not calm, "converted what does not fit", source)
    if isinstance(made, dlw.Tensor):
        to = replace(elements, dtype=dlw.DType(wanted))
        made = world.add_copy(made, to, None).elements.bytes()
    if calm:
        found = np.frombuffer(made, wanted)
        must(np.array_equal(found, expected, equal_nan=True), found, "not", expected)
