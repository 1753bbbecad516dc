"""Reference cycles through tensors are collected, as those through memoryviews are."""

import gc
import weakref

import numpy as np
import pytest
from forge import Forged

import dlpack_web as dlw


class Owner(bytearray):
    """Memory whose owner can refer to what is made of it."""


def collected(make):
    owner = Owner(b"abc")
    make(owner)
    seen = weakref.ref(owner)
    del owner
    gc.collect()
    return seen() is None


@pytest.fixture(autouse=True)
def _thawed():
    gc.unfreeze()  # conftest froze what was there: cycles are looked for in the rest
    yield
    gc.collect()
    gc.freeze()  # or every later test waits for a collection of it all


def itself(owner):
    owner.tensor = dlw.from_buffer(owner)


def with_view(owner):
    owner.tensor = dlw.from_buffer(owner)
    owner.view = memoryview(owner.tensor)


def view_alone(owner):
    owner.view = memoryview(dlw.from_buffer(owner))


def views(owner):
    owner.tensor = dlw.from_buffer(owner)
    owner.more = [memoryview(owner.tensor), memoryview(owner.tensor)[1:]]


def released(owner):
    with dlw.from_buffer(owner) as tensor:
        owner.view = memoryview(tensor)
        owner.tensor = tensor


def two_owners(owner):
    other = Owner(b"def")
    owner.other = dlw.from_buffer(other)
    other.owner = dlw.from_buffer(owner)


MAKES = [itself, with_view, view_alone, views, released, two_owners]


@pytest.mark.parametrize("make", MAKES)
def test_cycles_are_collected(make):
    assert collected(make)
    assert dlw.live_tensors() == 0


def test_cycles_that_others_hold_stay_alive():
    """A capsule and an array have holds of their own, which nobody can see into."""
    owner = Owner(b"abc")
    owner.tensor = dlw.from_buffer(owner)
    capsule = owner.tensor.__dlpack__(max_version=(1, 0))
    seen = weakref.ref(owner)
    del owner
    gc.collect()
    assert seen() is not None
    array = np.from_dlpack(dlw.from_dlpack(capsule))
    gc.collect()
    assert array.tolist() == [97, 98, 99]
    del seen().tensor
    del capsule, array
    gc.collect()
    assert seen() is None


def test_collected_tensors_are_released_ones():
    """Whatever finds a tensor again that was part of garbage."""
    found = []

    class Finalizer:
        def __del__(self):
            found.append(self.tensor)

    last = Finalizer()
    last.tensor = dlw.from_dlpack(np.arange(3.0))
    last.me = last
    del last
    gc.collect()
    (tensor,) = found
    assert tensor.released or np.asarray(tensor).tolist() == [0, 1, 2]
    tensor.release()


class Exporter:
    """Memory that goes when the garbage collector takes apart what refers to it."""

    def __init__(self):
        self.memory = Owner(b"abc")

    def __buffer__(self, flags):
        return memoryview(self.memory)


def test_garbage_is_released_before_it_is_taken_apart():
    """A deleter that runs meanwhile finds all tensors that are alive: none of those."""
    found = []

    class Looks(Forged):
        def _delete(self, address):
            super()._delete(address)
            found.extend(row.ref() for row in dlw.inspect({}).tensors)

    exporter = Exporter()
    first = dlw.from_buffer(exporter)
    box = [exporter]  # older than the tensor, younger than what exports the memory
    tensor = dlw.from_dlpack(first)
    box += [tensor, dlw.from_dlpack(Looks()), box]
    exporter.box = box
    del exporter, box, tensor, first
    gc.collect()
    assert [each.tobytes() for each in found] == []


def test_a_tensor_of_a_dying_owner_is_safe():
    """The owner's memory is there as long as a hold on it is."""
    owner = Owner(b"abc" * 1000)
    tensor = dlw.from_buffer(owner)
    owner.me = owner
    del owner
    gc.collect()
    assert bytes(tensor) == b"abc" * 1000
    tensor.release()


def test_the_class_of_an_interrupt_may_refer_to_its_tensor(monkeypatch):
    """A request for a buffer keeps the class until somebody asks for it."""
    kind = type("Interrupt", (BaseException,), {})

    def interrupted(self, kind=kind):
        raise kind

    tensor = dlw.from_dlpack(Forged(device_type=15, data=7))
    monkeypatch.setattr(dlw.Tensor, "_read_blocking", interrupted)
    with pytest.raises(kind):
        memoryview(tensor)
    monkeypatch.undo()
    kind.tensor = tensor
    seen = weakref.ref(kind)
    del kind, tensor, interrupted
    gc.collect()
    assert seen() is None
