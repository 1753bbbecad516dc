"""Capsules, managed tensors and handles."""

import random
from collections.abc import Callable
from ctypes import byref, c_void_p, cast, py_object, pythonapi
from dataclasses import replace
from typing import Any

import bridge_calls as bridge
import numpy as np
from forge import Versioned, consume, get_name, legacy, versioned
from world import (
    API,
    Elements,
    Export,
    Held,
    World,
    check_elements,
    clear_pending,
    delete_struct,
    must,
    release_handle,
)

import dlpack_web as dlw
from dlpack_web import _core
from operations.steps import operation

# --- capsules, structs and handles --------------------------------------------------------


@operation(10, on="any")
def export_capsule(world: World, rng: random.Random, held: Held) -> None:
    elements, is_new = held.elements, rng.random() < 0.6
    said = (elements.read_only and not elements.silent) or elements.padded
    version = (1, 0) if is_new else None
    refuses = [BufferError] if said and not is_new else []
    capsule = world.attempt(
        lambda: held.tensor.__dlpack__(max_version=version), *refuses
    )
    must(capsule is None or not refuses, "a legacy capsule of", elements)
    if capsule is None:
        return
    if is_new:
        elements = replace(elements, silent=False)
        struct: Any = versioned(capsule)
        flags = elements.read_only | elements.padded << 2
        must(struct.flags == flags, "flags", struct.flags, flags)
    else:
        elements = replace(elements, read_only=True, silent=True)
        struct = legacy(capsule)
    check_elements(elements, struct.dl_tensor, capsule)
    del struct.capsule
    world.capsules.append(Export(capsule, elements, is_new))


@operation(8)
def import_capsule(world: World, rng: random.Random) -> None:
    if not world.capsules:
        return
    export = world.capsules[rng.randrange(len(world.capsules))]
    fresh = get_name(export.what) in (b"dltensor", b"dltensor_versioned")
    tensor = world.attempt(
        lambda: dlw.from_dlpack(export.what), *([] if fresh else [ValueError])
    )
    must(fresh == (tensor is not None), "a capsule consumed twice")
    if tensor is not None:
        world.add(tensor, export.elements)


@operation(5)
def drop_capsule(world: World, rng: random.Random) -> None:
    if world.capsules:
        export = world.capsules.pop(rng.randrange(len(world.capsules)))
        world.changes += 1
        del export.what


@operation(6)
def consume_struct(world: World, rng: random.Random) -> None:
    """A consumer in C takes the managed tensor out of a capsule."""
    exports = [
        each
        for each in world.capsules
        if get_name(each.what) in (b"dltensor", b"dltensor_versioned")
    ]
    if not exports:
        return
    export = rng.choice(exports)
    address = _address_in(export)
    struct = consume(export.what)
    deleter = struct.deleter
    del struct
    world.structs.append(Export((deleter, address), export.elements, export.versioned))


def _address_in(export: Export) -> int:
    from forge import get_pointer

    name = b"dltensor_versioned" if export.versioned else b"dltensor"
    address: int = get_pointer(export.what, name)
    return address


@operation(4, on="host")
def export_struct(world: World, rng: random.Random, held: Held) -> None:
    managed = c_void_p()
    must(API.from_object(held.tensor, byref(managed)) == 0)
    struct = Versioned.from_address(managed.value or 0)
    check_elements(held.elements, struct.dl_tensor, held.tensor)
    elements = replace(held.elements, silent=False)
    world.structs.append(Export((struct.deleter, managed.value), elements))


@operation(4)
def import_struct(world: World, rng: random.Random) -> None:
    exports = [each for each in world.structs if each.versioned]
    if not exports:
        return
    export = rng.choice(exports)
    world.structs.remove(export)
    made = c_void_p()
    must(API.to_object(export.what[1], byref(made)) == 0)
    tensor = cast(made, py_object).value
    pythonapi.Py_DecRef(py_object(tensor))
    world.add(tensor, export.elements)


@operation(5)
def drop_struct(world: World, rng: random.Random) -> None:
    if world.structs:
        export = world.structs.pop(rng.randrange(len(world.structs)))
        world.changes += 1
        delete_struct(export, rng)


def add_handle(world: World, address: int, elements: Elements) -> None:
    struct, handle = bridge.struct_of(address)
    check_elements(elements, struct.dl_tensor, "what JavaScript has")
    must(handle not in [export.what for export in world.handles], "handle", handle)
    must(handle not in world.stale, "handle", handle, "was stale")
    world.handles.append(Export(handle, elements))


@operation(8, on="any")
def lend(world: World, rng: random.Random, held: Held) -> None:
    address = bridge.borrow(held.tensor, 0)
    must(address != 0, "lending", held.tensor, clear_pending())
    add_handle(world, address, held.elements)


@operation(8)
def use_handle(world: World, rng: random.Random) -> None:
    if not world.handles:
        return
    export = rng.choice(world.handles)
    elements, how = export.elements, rng.randrange(5)
    if how == 0:
        address = bridge.share(export.what)
        must(address != 0, clear_pending())
        add_handle(world, address, elements)
    elif how == 1:
        tensor = _core._take(export.what)
        world.handles.remove(export)
        world.stale.append(export.what)
        world.add(tensor, elements)
    elif how == 2 and elements.memory is not None:
        address = bridge.pack(export.what)
        must(address != 0, clear_pending())
        tensor = _core._take(bridge.struct_of(address)[1])
        world.add_copy(tensor, elements, elements.ints())
    elif how == 3:
        world.handles.remove(export)
        world.stale.append(export.what)
        world.changes += 1
        release_handle(export.what)
    elif elements.memory is not None:
        _view(world, export, rng)


def _view(world: World, export: Export, rng: random.Random) -> None:
    """Some of the elements, as JavaScript asks for them: by strides and an offset."""
    elements = export.elements
    places, bits = elements.places, elements.bits
    if not places.size:
        return
    key = [
        slice(rng.choice([None, rng.randrange(extent)]), None, rng.choice([1, 2, -1]))
        for extent in places.shape
    ]
    wanted = places[tuple(key)].transpose(rng.sample(range(places.ndim), places.ndim))
    begin, strides = (0,) * places.ndim, []
    first, root = int(wanted[begin]), int(places[begin])
    for axis, extent in enumerate(wanted.shape):
        second = (*begin[:axis], min(1, extent - 1), *begin[axis + 1 :])
        strides.append((int(wanted[second]) - first) // bits if extent > 1 else 7)
    offset = (first - root) // bits
    bridge.set_shape(*wanted.shape, strides=tuple(strides))
    address = bridge.view(export.what, wanted.ndim, offset)
    if address == 0:
        begins_within = first % 8 != root % 8
        error = clear_pending()
        must(begins_within and error is BufferError, "a view raised", error, key)
        return
    add_handle(world, address, replace(elements, places=wanted))


@operation(3)
def use_stale_handle(world: World, rng: random.Random) -> None:
    handle = rng.choice(world.stale) if world.stale else rng.getrandbits(32)
    if handle in [export.what for export in world.handles]:
        return
    must(bridge.release(handle) == -1, "released", handle)
    calls: list[Callable[[int], int]] = [
        bridge.share,
        bridge.pack,
        lambda stale: bridge.view(stale, 0, 0),
        lambda stale: bridge.chunk(stale, 0, 0),
    ]
    for call in calls:
        must(call(handle) == 0, "used", handle)
        must(bridge.error_kind() == 3, "the kind of", bridge.error_text())
        must(clear_pending() is dlw.ReleasedError)
    taken = world.attempt(lambda: _core._take(handle), dlw.ReleasedError)
    must(taken is None, "took", handle)


def uploaded(tensor: dlw.Tensor, dtype: dlw.DType, width: int) -> bytes:
    """The elements as they go to a GPU, in pieces; of `width` bytes each."""
    handle = bridge.struct_of(bridge.borrow(tensor, 0))[1]
    size, pieces, at = tensor.size, b"", 0
    try:
        while at < size:
            count = bridge.chunk(handle, dtype._packed, at)
            if count == 0:
                _core._raise()
            must(0 < count <= size - at, "a piece of", count)
            pieces += bridge.read_scratch(count * width)
            at += count
    finally:
        release_handle(handle)
    return pieces


@operation(5, on="host")
def upload(world: World, rng: random.Random, held: Held) -> None:
    elements = held.elements
    refuses = [BufferError] if elements.bits % 8 else []
    found = world.attempt(
        lambda: uploaded(held.tensor, elements.dtype, elements.bits // 8),
        *refuses,
        garbage=False,
    )
    if found is not None:
        must(found == elements.bytes(), "uploaded", found, elements.bytes())


@operation(3)
def wrap_gpu(world: World, rng: random.Random) -> None:
    gpu = rng.randrange(1, 2**32)
    if gpu in world.gpu:
        return
    shape = [rng.randint(0, 4) for _ in range(rng.randint(0, 3))]
    dtype = dlw.DType(rng.choice(["float32", "uint4", "int64"]))
    offset = rng.choice([0, 256]) if 0 not in shape else 0
    strides, read_only = rng.sample(range(5), len(shape)), rng.random() < 0.3
    bridge.set_shape(*shape, strides=tuple(strides), byte_offset=offset)
    strided = rng.random() < 0.5
    address = bridge.wrap(gpu, 2, len(shape), dtype._packed, read_only, strided)
    must(address != 0, clear_pending())
    world.gpu[gpu] = 0
    places = np.zeros(shape, np.int64)
    elements = Elements(None, places, dtype, read_only=read_only, device=(15, 2))
    add_handle(world, address, elements)


@operation(4)
def refuse_for_gpu(world: World, rng: random.Random) -> None:
    """What cannot be done here with a tensor on a GPU: each is said, nothing crashes."""
    gpu = [
        held
        for held in world.tensors
        if held.elements.memory is None and not held.released
    ]
    if not gpu:
        return
    tensor = rng.choice(gpu).tensor
    calls: list[Callable[[], Any]] = [
        tensor.numpy,
        tensor.tobytes,
        lambda: memoryview(tensor),
        lambda: tensor.__dlpack__(dl_device=(1, 0)),
        lambda: tensor.__dlpack__(copy=True),
        lambda: dlw.from_dlpack(tensor, copy=True),
        lambda: dlw.from_dlpack(tensor, device="cpu"),
        lambda: tensor.to_device("cpu"),
        lambda: tensor.to_device("webgpu:1"),
        lambda: np.asarray(tensor),
        lambda: tensor.write(tensor),
        lambda: tensor.gpu_buffer,
    ]
    must(world.attempt(rng.choice(calls), BufferError) is None, "a GPU's", tensor)
