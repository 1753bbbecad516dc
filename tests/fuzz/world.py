"""What there is in a run of the driver, and what must be true of it.

Memory is what somebody put there, with a copy that only the model writes. Of each tensor the
model knows at which bit of some memory each of its elements begins: views of it are views of
that array of places, so that nothing here computes strides.
"""

import ctypes
import gc
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from forge import DLTensor, api_of, dims, versioned

import dlpack_web as dlw
from dlpack_web import _core

API = api_of(dlw.Tensor)

type Places = "np.ndarray[Any, np.dtype[np.int64]]"


class Hostile(Exception):  # noqa: N818 - it is what it says
    """What producers of the driver raise; it has to come through."""


class HostileExit(BaseException):
    """The same that nobody may catch, as KeyboardInterrupt."""


class Wrong(AssertionError):  # noqa: N818 - likewise
    """The library did what it must not."""


def must(condition: object, *words: object) -> None:
    if not condition:
        raise Wrong(" ".join(map(str, words)) or "see the line")


# --- memory -------------------------------------------------------------------------------


class Memory:
    """Bytes at an address, with a copy. `gone` tells whether its owner was let go; None:
    nothing tells."""

    def __init__(
        self, address: int, size: int, gone: Callable[[], bool] | None = None
    ) -> None:
        self.address, self.gone = address, gone
        self.shadow = bytearray(ctypes.string_at(address, size) if size else b"")

    def read(self, place: int, bits: int) -> int:
        start, end = place // 8, -(-(place + bits) // 8)
        number = int.from_bytes(self.shadow[start:end], "little")
        return number >> place % 8 & (1 << bits) - 1

    def write(self, place: int, bits: int, value: int) -> None:
        """In the copy alone: who writes the memory itself is the library."""
        start, end = place // 8, -(-(place + bits) // 8)
        mask = (1 << bits) - 1 << place % 8
        number = int.from_bytes(self.shadow[start:end], "little") & ~mask
        number |= value << place % 8
        self.shadow[start:end] = number.to_bytes(end - start, "little")


@dataclass(frozen=True)
class Elements:
    """What a tensor must be."""

    memory: Memory | None  # None: a GPU's
    places: Places  # where each begins in memory, in bits
    dtype: dlw.DType
    padded: bool = False
    read_only: bool = False
    silent: bool = False  # read-only because nobody said whether it is
    device: tuple[int, int] = (1, 0)

    @property
    def bits(self) -> int:
        return 8 if self.padded else self.dtype.bits * self.dtype.lanes

    @property
    def packed(self) -> bool:
        """Whether an element may begin within a byte."""
        return self.bits % 8 != 0

    def ints(self) -> list[int]:
        assert self.memory is not None
        return [
            self.memory.read(place, self.bits) for place in self.places.ravel().tolist()
        ]

    def bytes(self) -> bytes:
        """All in row-major order, the first in the lowest bits."""
        numbers = enumerate(self.ints())
        together = sum(number << i * self.bits for i, number in numbers)
        return together.to_bytes(-(-self.places.size * self.bits // 8), "little")


# --- tensors, by what the library says of them --------------------------------------------


def described_places(described: DLTensor, bits: int) -> Places:
    """Where the elements begin, in bits from element 0: by the standard's words."""
    shape = dims(described.shape, described.ndim) or ()
    strides = dims(described.strides, described.ndim) or ()
    places = np.zeros(shape, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        along = [extent if i == axis else 1 for i in range(len(shape))]
        if extent > 1:
            places += np.arange(extent).reshape(along) * stride
    return places * bits


def describe(tensor: Any) -> DLTensor:
    described = DLTensor()
    if tensor.padded:  # which only the flags of a capsule say
        try:
            API.describe(tensor, ctypes.byref(described))
        except BufferError:
            struct = versioned(tensor.__dlpack__(max_version=(1, 0)))
            described = struct.dl_tensor
            described.owner = struct
            return described
        raise Wrong("described without flags:", tensor)
    must(API.describe(tensor, ctypes.byref(described)) == 0)
    described.owner = tensor
    return described


def seen(described: DLTensor, bits: int) -> Elements:
    """The elements that are in memory, as memory of their own."""
    places = described_places(described, bits)
    if places.size == 0:
        return Elements(Memory(0, 0), places, dlw.DType("uint8"))
    low = int(places.min()) // 8
    high = -(-(int(places.max()) + bits) // 8)
    address = described.data + described.byte_offset + low
    memory = Memory(address, high - low)
    return Elements(memory, places - 8 * low, dlw.DType("uint8"))


def ints_of(described: DLTensor, bits: int) -> list[int]:
    found = seen(described, bits)
    assert found.memory is not None
    return [found.memory.read(place, bits) for place in found.places.ravel().tolist()]


@dataclass(eq=False)
class Held:
    """A Tensor; released, it has no elements any more."""

    tensor: dlw.Tensor
    elements: Elements
    released: bool = False


@dataclass(eq=False)
class Export:
    """Something else that holds memory: a view, a capsule, a struct, a handle."""

    what: Any
    elements: Elements
    versioned: bool = True


def check_elements(elements: Elements, described: DLTensor, who: object) -> None:
    memory = elements.memory
    must(
        (described.device_type, described.device_id) == elements.device,
        "device of",
        who,
    )
    if memory is None:
        return
    must(memory.gone is None or not memory.gone(), "the memory is gone of", who)
    if elements.places.size == 0:
        must(not described.data, "a pointer to no elements in", who)
        return
    found, wanted = ints_of(described, elements.bits), elements.ints()
    must(found == wanted, "elements of", who, found, "and not", wanted)


def check_tensor(held: Held) -> None:
    tensor, wanted = held.tensor, held.elements
    must(tensor.released == held.released, tensor, "released:", held.released)
    if held.released:
        return
    must(tensor.shape == wanted.places.shape, tensor, "has", wanted.places.shape)
    must(tensor.dtype == wanted.dtype, tensor, "has", wanted.dtype)
    must(tensor.padded == wanted.padded, tensor, "is padded:", wanted.padded)
    must(tensor.read_only == wanted.read_only, tensor, "read-only:", wanted.read_only)
    nbytes = -(-wanted.places.size * wanted.bits // 8)
    must(tensor.nbytes == nbytes, tensor, "has", tensor.nbytes, "and not", nbytes)
    check_elements(wanted, describe(tensor), tensor)


# --- all of it ----------------------------------------------------------------------------


class World:
    """All that a sequence of operations made."""

    def __init__(self) -> None:
        self.tensors: list[Held] = []
        self.views: list[Export] = []  # memoryviews and ndarrays
        self.capsules: list[Export] = []
        self.structs: list[Export] = []  # (deleter, address) of managed tensors
        self.handles: list[Export] = []  # of holds that JavaScript would have
        self.stale: list[int] = []
        self.memories: list[Memory] = []
        self.producers: list[Any] = []  # whose memory must stay until the end
        self.kept: list[Any] = []  # cycles, weak references, ...
        self.gpu: dict[int, int] = {}  # handles of GPU buffers, and how often dropped
        self.depth = 0  # of operations within operations
        self.changes = 0  # what operations within operations may have done
        self.quiet = False  # nothing happens within operations
        self.unraisable: list[str] = []

    def attempt(
        self,
        call: Callable[[], Any],
        *allowed: type[BaseException],
        garbage: bool = True,
    ) -> Any:
        """What the library gives, or None: an error of these classes, or what was used has
        been released meanwhile. The garbage collector runs here and nowhere else, as it
        may run operations of its own."""
        before = self.changes
        if garbage:
            gc.enable()
        try:
            return call()
        except dlw.ReleasedError:
            must(self.changes != before or dlw.ReleasedError in allowed, "released?")
        except allowed:
            pass
        finally:
            gc.disable()
        return None

    # --- adding -----------------------------------------------------------------------

    def add(self, tensor: dlw.Tensor, elements: Elements) -> Held:
        held = Held(tensor, elements)
        must(type(tensor) is dlw.Tensor, type(tensor))
        self.tensors.append(held)
        check_tensor(held)
        return held

    def add_copy(
        self, tensor: dlw.Tensor, source: Elements, values: list[int] | None
    ) -> Held:
        """A tensor with memory of its own; values: None where they may have changed
        while they were copied."""
        described = describe(tensor)
        found = seen(described, source.bits)
        assert found.memory is not None
        if values is not None:
            copied = ints_of(described, source.bits)
            must(copied == values, "a copy has", copied, "and not", values)
        elements = replace(
            source,
            memory=found.memory,
            places=found.places,
            read_only=False,
            silent=False,
            device=(1, 0),
        )
        return self.add(tensor, elements)

    # --- choosing ---------------------------------------------------------------------

    def some(self, rng: random.Random, *, host: bool = True) -> Held | None:
        """A tensor that is not released."""
        found = [
            held
            for held in self.tensors
            if not held.released and (held.elements.memory is not None or not host)
        ]
        return rng.choice(found) if found else None

    def release(self, held: Held) -> None:
        held.released = True  # first: what runs meanwhile must find it so
        self.changes += 1
        self.attempt(held.tensor.release)

    # --- the end ----------------------------------------------------------------------

    def check(self) -> None:
        for held in self.tensors:
            check_tensor(held)
        for what in self.unraisable:
            must(what in ("Hostile", "HostileExit"), "unraisable:", what)

    def end(self, rng: random.Random, baseline: int) -> None:
        """Lets go of everything in some order; then nothing may be left."""
        self.quiet = True
        pools: list[list[Any]] = [
            self.tensors,
            self.views,
            self.capsules,
            self.kept,
            self.structs,
            self.handles,
        ]
        while any(pools):
            pool = rng.choice([each for each in pools if each])
            export = pool.pop(rng.randrange(len(pool)))
            if pool is self.structs:
                delete_struct(export, rng)
            elif pool is self.handles:
                release_handle(export.what)
            del export, pool
            if rng.random() < 0.05:
                gc.collect()
        clear_pending()
        gc.collect()
        gc.collect()
        left = dlw.live_tensors() - baseline
        must(left == 0, left, "managed tensors are left;", _core._alive())
        must(not _core._alive(), "tensors are left:", _core._alive())
        for memory in self.memories:
            must(memory.gone is None or memory.gone(), "memory is still held", memory)
        for handle, drops in self.gpu.items():
            must(drops == 1, "GPU handle", handle, "was dropped", drops, "times")
        self.check()


# --- the C side ---------------------------------------------------------------------------

_release = ctypes.PyDLL(_core.__file__).dlw_bridge_release
_release.restype, _release.argtypes = ctypes.c_int32, (ctypes.c_uint32,)
_pthread = ctypes.CDLL(None)


def release_handle(handle: int) -> None:
    must(_release(handle) == 0, "handle", handle, "was refused")


def clear_pending() -> type[BaseException] | None:
    """The class of the exception that the last failing function for JavaScript kept."""
    try:
        _core._raise()
    except BaseException as error:  # noqa: BLE001 - whichever it is
        return type(error)
    return None


def delete_struct(export: Export, rng: random.Random) -> None:
    """Calls a managed tensor's deleter: with the GIL, without it, or on a thread that
    Python has never seen. What another producer's deleter leaves behind comes through."""
    deleter, address = export.what
    how = rng.randrange(3)
    if how < 2:
        of_type = ctypes.PYFUNCTYPE if how == 0 else ctypes.CFUNCTYPE
        try:
            of_type(None, ctypes.c_void_p)(deleter)(address)
        except (Hostile, HostileExit):
            pass
        except SystemError as error:  # ctypes, which finds an exception pending
            must(isinstance(error.__cause__, Hostile | HostileExit), error)
    else:
        thread = ctypes.c_ulong()
        main, argument = ctypes.c_void_p(deleter), ctypes.c_void_p(address)
        created = _pthread.pthread_create(ctypes.byref(thread), None, main, argument)
        must(created == 0 and _pthread.pthread_join(thread, None) == 0)
