"""Foreign code that runs in the middle of ours, around arrays, calls back into us.

Each hook does all of `meddle` to the tensor at hand: in the same thread, in another, and
once more inside of itself. Nothing may crash (`make suite NAME=asan`), every deleter runs once,
and no tensor is left.
"""

import gc
import weakref
from contextlib import suppress

import numpy as np
import pytest
from conftest import IN_PYODIDE, in_threads
from forge import Forged, Legacy, Versioned

import dlpack_web as dlw
from dlpack_web import _core

VALUES = np.arange(6, dtype="float32").reshape(2, 3)
ERRORS = (BufferError, TypeError, ValueError, AttributeError, IndexError)


@pytest.fixture(autouse=True)
def _nothing_leaks():
    gc.collect()
    before = dlw.live_tensors(), set(Forged.alive)
    yield
    gc.collect()
    assert (dlw.live_tensors(), Forged.alive) == before


def meddle(x):
    """Imports x, looks at all that there is, and lets go of what is a Tensor."""
    for use in (dlw.from_dlpack, dlw.from_buffer, np.asarray, dlw.inspect, hash, len):
        with suppress(*ERRORS):
            use(x)
    if isinstance(x, dlw.Tensor):
        with suppress(*ERRORS):
            x[0].reshape(-1).write(np.zeros(3, "float32"))
        x.release()


def in_both(use, x=None):
    """Here, and in a thread of its own."""
    use(x)
    if not IN_PYODIDE:
        in_threads(use, [x])


class Hook:
    """Calls `meddle` of what it was set to, once inside of itself."""

    def __init__(self):
        self.target, self.depth, self.calls = None, 0, 0

    def __call__(self):
        self.calls += 1
        if self.depth == 2:
            return
        self.depth += 1
        try:
            in_both(meddle, self.target)
        finally:
            self.depth -= 1


@pytest.fixture
def hook():
    return Hook()


# --- producers ------------------------------------------------------------------------------


class Producer(Forged):
    def __init__(self, hook, **fields):
        super().__init__(**fields)
        self.hook, self.made = hook, 0

    def __dlpack__(self, **keywords):
        self.hook()
        if self.made:
            raise BufferError("one capsule is all there is")
        self.made += 1
        return super().__dlpack__(**keywords)

    def __dlpack_device__(self):
        self.hook()
        return super().__dlpack_device__()

    @property
    def dtype(self):
        self.hook()
        return np.dtype("float32")


@pytest.mark.parametrize("flavour", [Legacy, Versioned])
@pytest.mark.parametrize("options", [{}, {"device": "cpu"}, {"copy": True}])
def test_producers_are_asked_inside_of_themselves(hook, flavour, options):
    producer = Producer(hook, flavour=flavour)
    hook.target = producer
    with suppress(BufferError):  # the inner call may have got the one capsule
        dlw.from_dlpack(producer, **options).release()
    assert hook.calls
    gc.collect()
    assert producer.deleted == producer.made == 1


@pytest.mark.parametrize("flavour", [Legacy, Versioned])
def test_deleters_call_back(hook, flavour):
    """The deleter runs while the tensor lets go; what it asks is answered."""

    class Deleting(Forged):
        def _delete(self, address):
            hook()
            super()._delete(address)

    for end in (dlw.Tensor.release, lambda t: t.__exit__()):
        producer = Deleting(flavour=flavour)
        tensor = hook.target = dlw.from_dlpack(producer)
        end(tensor)
        assert tensor.released
        assert producer.deleted == 1
    producer = Deleting(flavour=flavour)
    tensor = dlw.from_dlpack(producer)
    hook.target = None
    array = tensor.numpy()
    del tensor
    assert producer.deleted == 0
    del array
    assert producer.deleted == 1
    assert hook.calls


# --- buffers --------------------------------------------------------------------------------


class Buffer:
    def __init__(self, hook):
        self.hook, self.memory = hook, bytearray(24)
        self.given = self.taken_back = 0

    def __buffer__(self, flags):
        self.hook()
        self.given += 1
        return memoryview(self.memory)

    def __release_buffer__(self, view):
        self.taken_back += 1
        view.release()
        self.hook()


def test_buffers_call_back_as_they_come_and_go(hook):
    buffer = hook.target = Buffer(hook)
    tensor = dlw.from_buffer(buffer)
    view = tensor[:12]
    tensor.release()
    view.release()
    gc.collect()
    assert hook.calls > 2
    assert buffer.given == buffer.taken_back > 1
    with dlw.empty(24, "uint8") as target:
        target.write(buffer)
        hook.target = target
        with suppress(BufferError):
            target.write(buffer)
    assert buffer.given == buffer.taken_back


def test_arrays_whose_dtype_calls_back(hook):
    class Array(np.ndarray):
        @property
        def dtype(self):
            hook()
            return np.dtype("float32")

        def __array_finalize__(self, other):
            if hook.target is None:
                hook()

    array = VALUES.copy().view(Array)
    hook.target = array
    dlw.from_dlpack(array).release()
    with dlw.empty((2, 3)) as t, suppress(*ERRORS):
        t.write(array)


# --- keys, shapes, axes ---------------------------------------------------------------------


class Index:
    def __init__(self, hook, value):
        self.hook, self.value = hook, value

    def __index__(self):
        self.hook()
        return self.value


def extents_of(hook, *values):
    for value in values:
        hook()
        yield value


USES = {
    "key": lambda t, hook: t[Index(hook, 1)],
    "keys": lambda t, hook: t[0, Index(hook, 1)],
    "slice": lambda t, hook: t[Index(hook, 0) : Index(hook, 2) : Index(hook, 1)],
    "shape": lambda t, hook: t.reshape((Index(hook, 3), 2)),
    "shape of a generator": lambda t, hook: t.reshape(extents_of(hook, 3, 2)),
    "axes": lambda t, hook: t.permute_dims((Index(hook, 1), Index(hook, 0))),
    "axes of a generator": lambda t, hook: t.permute_dims(extents_of(hook, 1, 0)),
    "write": lambda t, hook: t.write(Source(hook)),
    "device": lambda t, hook: t.__dlpack__(dl_device=(Index(hook, 1), Index(hook, 0))),
    "version": lambda t, hook: t.__dlpack__(
        max_version=(Index(hook, 1), Index(hook, 0))
    ),
}


class Source:
    def __init__(self, hook):
        self.hook = hook

    def __dlpack__(self, **keywords):
        self.hook()
        return VALUES.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("name", USES)
def test_a_tensor_that_is_released_while_it_is_used(hook, name):
    producer = Forged()
    tensor = hook.target = dlw.from_dlpack(producer)
    with suppress(dlw.ReleasedError, TypeError):  # of __dlpack__, which wants ints
        made = USES[name](tensor, hook)
        if isinstance(made, dlw.Tensor):
            made.release()
        del made
    tensor.release()
    gc.collect()
    assert producer.deleted == 1


def test_empty_asks_its_shape(hook):
    hook.target = dlw.empty(3)
    dlw.empty((Index(hook, 2), Index(hook, 3))).release()
    dlw.empty(extents_of(hook, 2, 3)).release()
    assert hook.calls > 3


# --- ends -----------------------------------------------------------------------------------


def test_weakref_callbacks_and_finalizers_look_at_all_tensors(hook):
    producer, other = Forged(), dlw.empty((2, 3))
    tensor, hook.target = dlw.from_dlpack(producer), other
    references = [
        weakref.ref(tensor, lambda _: hook()),
        weakref.ref(tensor, lambda _: meddle(other)),
    ]
    weakref.finalize(tensor, hook)
    del tensor
    assert hook.calls == 2
    assert all(reference() is None for reference in references)
    assert producer.deleted == 1
    assert other.released


class Owner(bytearray):
    """Ends with the memory that it owns."""

    def __init__(self, hook, *args):
        super().__init__(*args)
        self.hook = hook

    def __del__(self):
        self.hook()


@pytest.mark.parametrize("cyclic", [False, True])
def test_owners_that_end_call_back(hook, cyclic):
    other = hook.target = dlw.empty((2, 3))
    owner = Owner(hook, 24)
    tensor = dlw.from_buffer(owner)
    if cyclic:
        owner.tensor = tensor
    del owner
    assert not hook.calls
    view = tensor[:12]
    del tensor
    gc.collect()
    assert not hook.calls
    del view
    gc.collect()
    assert hook.calls
    assert other.released


def test_an_owner_asks_for_its_own_tensor_when_it_ends():
    """`inspect` finds the Tensor of an owner that is being collected, or does not."""
    seen = []

    class Asking(bytearray):
        def __del__(self):
            in_both(lambda _: seen.append(str(dlw.inspect())))
            with suppress(*ERRORS):
                dlw.from_buffer(self).release()
            with suppress(*ERRORS):
                self.tensor.release()

    for _ in range(3):
        owner = Asking(24)
        owner.tensor = dlw.from_buffer(owner)
        del owner
        gc.collect()
    assert len(seen) == (3 if IN_PYODIDE else 6)


@pytest.mark.parametrize("depth", [2, 100, 3000])
def test_ends_at_depth(depth):
    """A chain of owners, each of which ends with the one before it."""
    ended = []

    class Link(bytearray):
        def __del__(self):
            ended.append(1)
            if len(ended) % 500 == 1:  # what inspect() begins with
                _core._alive()

    link = None
    for _ in range(depth):
        owner = Link(8)
        owner.before = link
        link = dlw.from_buffer(owner)
        del owner
    del link
    gc.collect()
    assert len(ended) == depth


@pytest.mark.skipif(IN_PYODIDE, reason="there are no threads")
def test_threads_release_import_and_view_the_same_tensor():
    producers = [Forged() for _ in range(50)]
    for producer in producers:
        tensor = dlw.from_dlpack(producer)
        in_threads(meddle, [tensor] * 3)
        assert tensor.released
    gc.collect()
    assert [producer.deleted for producer in producers] == [1] * 50


def test_array_functions_of_numpy_in_the_middle(hook):
    """__array__ of a source that is written, and NumPy's own of a released tensor."""

    class Lazy:
        def __array__(self, dtype=None, copy=None):
            hook()
            return VALUES

    tensor = hook.target = dlw.empty((2, 3))
    with pytest.raises(TypeError, match="it has __array__"):
        tensor.write(Lazy())
    assert not hook.calls
    with suppress(dlw.ReleasedError):
        tensor.write(np.asarray(Lazy()))
    assert tensor.released
