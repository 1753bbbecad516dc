"""Whose memory is shared: arrays of NumPy and others, structs made by hand, and producers
that misbehave."""

import array
import ctypes
import os
import random
import weakref
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_void_p
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from conftest import DTYPES
from forge import (
    DESTRUCTOR,
    FROM_OBJECT,
    READ_ONLY,
    SUBBYTE_PADDED,
    Api,
    Forged,
    Legacy,
    Versioned,
    new_capsule,
)
from world import Elements, Hostile, HostileExit, Memory, Places

import dlpack_web as dlw

type Act = Callable[[random.Random], None]

NUMPY = [row["name"] for row in DTYPES if row["numpy"] == "numpy"]
SUB_BYTE = [row for row in DTYPES if row["bits"] < 8]
HOSTILE = ctypes.PyDLL(os.environ["DLW_HOSTILE"])  # hostile.c


@dataclass
class Source:
    """An object, what a tensor over it must be, and what its import may raise instead."""

    obj: Any
    elements: Elements
    refuses: tuple[type[BaseException], ...] = ()
    aligned: bool = True
    buffer: bool = False  # whether it has the buffer protocol
    dlpack: bool = True  # whether it has __dlpack__
    copies: bool = False  # whether it makes the copy itself


def nothing(_: random.Random) -> None:
    """What a harmless producer does besides."""


# --- arrays -------------------------------------------------------------------------------


class Watched(np.ndarray):  # type: ignore[type-arg]
    """An ndarray whose end can be seen."""


class Bytes(bytearray):
    """A bytearray that may refer to what is made of it."""


def _view(rng: random.Random, whole: Any) -> Any:
    """Sliced, transposed and broadcast as NumPy can."""
    index: list[Any] = []
    for _ in whole.shape:
        step = rng.choice([None, None, 1, 2, -1, -2])
        part = slice(rng.randrange(3), rng.randrange(5), rng.choice([1, 2]))
        index.append(slice(None, None, step) if rng.random() < 0.7 else part)
    view = whole[(*index, ...)]
    view = view.transpose(rng.sample(range(view.ndim), view.ndim))
    if rng.random() < 0.1:
        view = np.broadcast_to(view, (rng.randrange(3), *view.shape), subok=True)
    return view


def _shape(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(rng.randint(0, 3)))


def _filled(rng: random.Random, count: int) -> "np.ndarray[Any, Any]":
    """Bytes; those of small numbers now and then, which some conversions need."""
    if rng.random() < 0.5:
        return np.frombuffer(rng.randbytes(count), np.uint8).copy()
    return np.arange(count // 8 + 1, dtype=np.int64).view(np.uint8)[:count].copy()


def _places(shape: tuple[int, ...], bits: int, first: int = 0) -> Places:
    """Of elements that lie one after the other, the first one at a byte."""
    count = int(np.prod(shape, dtype=int))
    return (np.arange(count, dtype=np.int64) * bits + 8 * first).reshape(shape)


def _aligned(address: int, dtype: dlw.DType, size: int) -> bool:
    unit = max(1, dtype.bits // (16 if dtype.code == 5 else 8))
    return size == 0 or address % unit == 0


def numpy_array(rng: random.Random, _: Act) -> Source:
    """Over memory that may be misaligned."""
    name = rng.choice(NUMPY)
    dtype, shape = dlw.DType(name), _shape(rng)
    off = rng.choice([0, 0, 0, 0, 0, 1, dtype.itemsize])
    places = _places(shape, dtype.bits, off)
    memory = _filled(rng, off + places.size * dtype.itemsize)
    if name == "bool":
        memory &= 1
    whole = memory[off:].view(name).reshape(shape).view(Watched)
    same = rng.getstate()
    view = _view(rng, whole)
    rng.setstate(same)
    places = _view(rng, places)
    if rng.random() < 0.3:
        view.flags.writeable = False
    owner = weakref.ref(view)
    known = Memory(memory.ctypes.data, memory.size, lambda: owner() is None)
    elements = Elements(known, places, dtype, read_only=not view.flags.writeable)
    aligned = _aligned(view.ctypes.data, dtype, view.size)
    return Source(view, elements, aligned=aligned, buffer=True, copies=True)


def ml_array(rng: random.Random, _: Act) -> Source:
    """Of a dtype that NumPy cannot export: sub-byte ones are padded."""
    name = rng.choice(
        ["bfloat16", "float8_e4m3fn", "int4", "uint4", "float6_e2m3fn", "float4_e2m1fn"]
    )
    dtype, shape = dlw.DType(name), _shape(rng)
    places = _places(shape, 8 * dtype.itemsize)
    memory = _filled(rng, places.size * dtype.itemsize)
    whole = memory.view(getattr(ml_dtypes, name)).reshape(shape)
    axes = rng.sample(range(len(shape)), len(shape))
    known = Memory(memory.ctypes.data, memory.size)
    elements = Elements(known, places.transpose(axes), dtype, padded=dtype.bits < 8)
    return Source(whole.transpose(axes), elements, buffer=True)


def buffer_object(rng: random.Random, _: Act) -> Source:
    """What the standard library has."""
    count, kind = rng.choice([0, 1, 3, 8]), rng.randrange(4)
    obj: Any
    if kind == 0:
        obj, name = Bytes(rng.randbytes(count)), "uint8"
    elif kind == 1:
        obj, name = array.array("d", range(count)), "float64"
    elif kind == 2:
        obj, name = (ctypes.c_int16 * count)(*range(count)), "int16"
    else:
        obj, name = rng.randbytes(count), "uint8"
    dtype = dlw.DType(name)
    address = np.frombuffer(obj, np.uint8).ctypes.data if count else 0
    gone = None
    if kind == 0:
        owner = weakref.ref(obj)

        def gone() -> bool:
            return owner() is None

    known = Memory(address, count * dtype.itemsize, gone)
    elements = Elements(
        known, _places((count,), dtype.bits), dtype, read_only=kind == 3
    )
    return Source(obj, elements, buffer=True, dlpack=False)


class Exporter:
    """A class with the buffer protocol written in Python, which does more than it should."""

    def __init__(self, rng: random.Random, hostile: Act) -> None:
        self.memory = Bytes(rng.randbytes(rng.choice([1, 4, 9])))
        self.rng, self.hostile = random.Random(rng.random()), hostile
        self.out = [0]

    def __buffer__(self, flags: int) -> memoryview:
        self.hostile(self.rng)
        self.out[0] += 1
        return memoryview(self.memory)

    def __release_buffer__(self, view: memoryview) -> None:
        self.out[0] -= 1
        same = bytes(view) == bytes(self.memory)
        view.release()
        assert same
        self.hostile(self.rng)


def exporter(rng: random.Random, hostile: Act) -> Source:
    obj = Exporter(rng, hostile)
    count, out = len(obj.memory), obj.out
    address = ctypes.addressof((ctypes.c_char * count).from_buffer(obj.memory))
    # In cyclic garbage CPython clears what would call __release_buffer__.
    seen = weakref.ref(obj)
    known = Memory(address, count, lambda: out[0] == 0 or seen() is None)
    elements = Elements(known, _places((count,), 8), dlw.DType("uint8"))
    return Source(obj, elements, buffer=True, dlpack=False)


# --- structs made by hand -----------------------------------------------------------------


def _layout(rng: random.Random) -> tuple[list[int], list[int], int, int]:
    """(shape, strides, elements before and behind element 0): axes in any order, with
    gaps, backwards or broadcast. Element 0 begins a byte, whatever the dtype."""
    lowest = 0 if rng.random() < 0.2 else 1
    shape = [rng.randint(lowest, 4) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.05:
        shape = [1] * rng.randint(6, 64)
    strides, before, behind, step = [0] * len(shape), 0, 0, 1
    for axis in rng.sample(range(len(shape)), len(shape)):
        strides[axis] = step * rng.choice([1, 1, 2, -1, -2, 0])
        reach = max(shape[axis] - 1, 0) * strides[axis]
        before, behind = before + max(-reach, 0), behind + max(reach, 0)
        step += abs(reach)
    return shape, strides, -(-before // 8) * 8, behind


class Struct(Forged):  # type: ignore[misc]
    """A struct whose deleter does something else besides, or raises."""

    def __init__(self, rng: random.Random, act: Act, **fields: Any) -> None:
        super().__init__(**fields)
        self.rng, self.act = random.Random(rng.random()), act
        self.out = 0
        if act is not nothing and rng.random() < 0.5:  # the exception stays, as in C
            of_c = HOSTILE.delete_legacy
            if self.flavour is Versioned:
                of_c = HOSTILE.delete_versioned
            self.managed.deleter = ctypes.cast(of_c, c_void_p)
            self.managed.manager_ctx = id(self)

    def address(self) -> int:
        """The struct itself, for somebody to delete."""
        self.out += 1
        self.alive.add(self)
        return ctypes.addressof(self.managed)

    def __dlpack__(self, **keywords: object) -> object:
        return new_capsule(self.address(), self.name, self.destructor)

    def _destroy(self, capsule: int) -> None:
        with suppress(Hostile, HostileExit):  # CPython calls it whatever is pending
            super()._destroy(capsule)

    def _delete(self, address: int) -> None:
        assert self.out > 0, "deleted twice"
        self.out -= 1
        super()._delete(address)
        if self.out > 0:
            self.alive.add(self)
        self.act(self.rng)


def struct(rng: random.Random, hostile: Act) -> Source:
    """A right struct of any dtype and flavour."""
    row = rng.choice(DTYPES if rng.random() < 0.6 else SUB_BYTE)
    lanes = rng.choice([1, 1, 1, 1, 2, 3, 7])
    flavour = rng.choice([Versioned, Versioned, Legacy])
    silent = flavour is Legacy
    bits, padded, read_only = row["bits"] * lanes, False, silent
    fields: dict[str, Any] = {"code": row["code"], "bits": row["bits"], "lanes": lanes}
    if not silent:
        read_only = rng.random() < 0.3
        padded = row["bits"] < 8 and lanes == 1 and rng.random() < 0.5
        bits = 8 if padded else bits
        fields["flags"] = READ_ONLY * read_only | SUBBYTE_PADDED * padded
        fields["minor"] = rng.randint(0, 9)
    shape, strides, before, behind = _layout(rng)
    memory = _filled(rng, -(-(before + behind + 1) * bits // 8))
    first = memory.ctypes.data + before * bits // 8
    byte_offset = rng.choice([before * bits // 8, 0, 4096])
    fields |= {"shape": shape, "strides": strides, "ndim": len(shape)}
    fields |= {"data": first - byte_offset, "byte_offset": byte_offset}
    act = hostile if rng.random() < 0.3 else nothing
    producer = Struct(rng, act, flavour=flavour, **fields)
    producer.memory = memory
    known = Memory(memory.ctypes.data, memory.size, lambda: producer.out == 0)
    index = np.full(shape, before, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        along = [extent if i == axis else 1 for i in range(len(shape))]
        index += np.arange(extent).reshape(along) * stride
    dtype = dlw.DType(row["name"] if lanes == 1 else f"{row['name']}x{lanes}")
    elements = Elements(known, index * bits, dtype, padded, read_only, silent)
    return Source(producer, elements, aligned=_aligned(first, dtype, index.size))


# --- producers that do something else -----------------------------------------------------


class Exchanged:
    """An object whose type has C functions for the exchange; see `exchanged`."""

    producer: Struct
    rng: random.Random
    hostile: Act

    def give(self) -> tuple[int, int]:
        """What the function returns, and the struct that it gives."""
        self.hostile(self.rng)
        how = self.rng.randrange(4)
        if how == 0 or self.producer.flavour is Legacy:  # __dlpack__ has to do
            return -1, 0
        return 0, 0 if how == 1 else self.producer.address()

    def __dlpack__(self, **keywords: object) -> object:
        return self.producer.__dlpack__(**keywords)


def _exchange_type() -> tuple[type[Exchanged], Api]:
    function = ctypes.cast(HOSTILE.from_object, FROM_OBJECT)
    api = Api(major=1, minor=3, from_object=function)
    name = b"dlpack_exchange_api"
    capsule = new_capsule(ctypes.addressof(api), name, DESTRUCTOR())

    class Exchange(Exchanged):
        __dlpack_c_exchange_api__ = capsule
        __dlpack__ = Exchanged.__dlpack__

    return Exchange, api


# As long as the process lives, as DLPack says; more than the library remembers.
EXCHANGES = [_exchange_type() for _ in range(12)]


def exchanged(rng: random.Random, hostile: Act) -> Source:
    """Through C functions that give a struct, or nothing, or raise."""
    source = struct(rng, hostile)
    obj = rng.choice(EXCHANGES)[0]()
    obj.producer, obj.hostile = source.obj, hostile
    obj.rng = random.Random(rng.random())
    return replace(source, obj=obj)


class Reenters:
    """A producer whose __dlpack__ does something else before it gives its capsule, and
    may then give the wrong one."""

    def __init__(self, inner: Any, rng: random.Random, hostile: Act) -> None:
        self.inner, self.rng, self.hostile = inner, random.Random(rng.random()), hostile
        self.mood = rng.choice(["old", "same", "consumed", "junk", "right", "right"])
        self.capsule: Any = None

    def __dlpack__(self, **keywords: Any) -> Any:
        self.hostile(self.rng)
        if self.mood == "old" and keywords:
            raise TypeError("an old signature")
        if self.mood == "junk" and self.rng.random() < 0.5:
            return self.rng.choice([None, 0, "capsule", self, object()])
        if self.mood == "same" and self.capsule is not None:
            return self.capsule
        capsule = self.inner.__dlpack__(**keywords)
        if self.mood == "same":
            self.capsule = capsule
        if self.mood == "consumed":
            dlw.from_dlpack(capsule).release()
        return capsule


def reenters(rng: random.Random, hostile: Act) -> Source:
    source = rng.choice([numpy_array, struct])(rng, hostile)
    obj = Reenters(source.obj, rng, hostile)
    elements, refuses = source.elements, source.refuses
    if obj.mood in ("consumed", "junk"):
        refuses = (ValueError, TypeError, BufferError)
    if obj.mood == "old" and isinstance(obj.inner, np.ndarray):
        if elements.read_only:  # which a legacy capsule cannot say
            refuses = (BufferError,)
        elements = replace(elements, read_only=True, silent=True)
    copies = source.copies and obj.mood != "old"
    return Source(obj, elements, refuses, source.aligned, copies=copies)


MAKERS = [
    numpy_array,
    numpy_array,
    ml_array,
    buffer_object,
    exporter,
    struct,
    struct,
    exchanged,
    reenters,
]
