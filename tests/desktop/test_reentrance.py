"""Other code in the middle of ours: finalizers and release functions that use the library,
wherever Python may run one, and threads.

The places are those of an interrupt (interrupting.py); a sample of them, because each takes
milliseconds. WHOLE=1 takes four times as many.
"""

import contextvars
import gc
import os
import random
import signal
import sys
import threading
import weakref
from contextlib import suppress

import numpy as np
import pytest
from gpu_world import live, make_buffer
from interrupting import EVENT, TOOL, Interrupt, _places, _reaches

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks", "ends")

FILL = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> k: f32;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] = k; }
}"""
ADD = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = a[id.x] + b[id.x]; }
}"""
COUNT = 1000
DEADLOCK_S = 300  # for one place of many


@pytest.fixture
def ends():
    """A deadlock fails."""

    def stuck(*_):
        raise AssertionError("it does not end")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(DEADLOCK_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Meanwhile(Interrupt):
    """A with block that runs `other` at its `at`-th place; counts the places. within: the
    name of the function that has them."""

    def __init__(self, at, other, within=None):
        super().__init__(at)
        self.other, self.within = other, within

    def step(self, code, offset):
        if self.within not in (None, code.co_name):
            return
        if offset in _places[code] and _reaches(sys._getframe(1)):
            self.count += 1
            if self.count == self.at:
                sys.monitoring.register_callback(TOOL, EVENT, None)
                # Finalizers record nothing in somebody's batch.
                contextvars.Context().run(self.other)


def everywhere(operation, other, most=60, within=None):
    """Runs `other` at each place of `operation`, or so many of them."""
    with Meanwhile(0, None, within) as places:
        operation()
    assert places.count > 5
    for at in some(places, most):
        signal.alarm(DEADLOCK_S)
        with Meanwhile(at, other, within):
            operation()


def some(places, most):
    """The numbers of places, or so many of them."""
    chosen = range(1, places.count + 1)
    if os.environ.get("WHOLE"):
        most *= 4
    return sorted(random.Random(45).sample(chosen, min(most, places.count)))


def strided(seed, dtype="f8"):
    return np.random.default_rng(seed).integers(0, 99, (60, 30)).astype(dtype)[::2, ::3]


def upload_strided():
    array = strided(1)
    with dlw.from_dlpack(array) as source:
        on_gpu = source.to_device("webgpu", dtype="float32")
    assert (np.asarray(on_gpu) == array).all()


def write_converted():
    array = strided(2, "i8")
    with dlw.empty(array.shape, "int32", device="webgpu") as target:
        target.write(array, convert=True)
        assert (np.asarray(target) == array).all()


def add():
    a, b = (np.arange(COUNT, dtype="f4") * k for k in (1, 3))
    x, y = (dlw.from_dlpack(each, device="webgpu") for each in (a, b))
    with dlw.empty(COUNT, device="webgpu") as sum_:
        dlw.webgpu.Kernel(ADD)(x, y, sum_)
        assert (np.asarray(sum_) == a + b).all()


def replay():
    fill = dlw.webgpu.Kernel(FILL)
    x = dlw.empty(COUNT, device="webgpu")
    with dlw.webgpu.batch() as batch:
        fill(x, 1)
    batch.update(0, {1: 5})
    batch.run()
    assert (np.asarray(x) == 5).all()
    batch.release()


def adopt():
    """A foreign buffer, whose release function uses the library."""
    with dlw.empty(1, device="webgpu") as tensor:
        device = tensor.device
    buffer, kept = make_buffer(device, 64), []
    options = {"device": device, "release": lambda: kept.append(1)}
    dlw.from_gpu_buffer(buffer, 16, "float32", **options).release()
    assert kept == [1]


OPERATIONS = [upload_strided, write_converted, add, replay, adopt]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.__name__)
def test_all_of_it_within_any_of_it(operation):
    def other():
        for each in OPERATIONS:
            each()

    everywhere(operation, other, 24)


@pytest.mark.parametrize("way", ["release", "__del__", "weakref"])
def test_what_runs_at_an_end_may_upload(way, device):
    """Within an upload that packs, where the thread had a lock once."""
    done = []

    class Ends:
        def __del__(self):
            if way == "__del__":
                done.append(upload_strided())

    def end():
        kept = Ends()
        ref = weakref.ref(
            kept, lambda _: way == "weakref" and done.append(upload_strided())
        )
        release = (lambda: done.append(upload_strided())) if way == "release" else None
        tensor = dlw.from_gpu_buffer(
            make_buffer(device, 16), 4, "float32", device=device, release=release
        )
        kept.loop, kept.tensor = kept, tensor
        del kept, tensor
        gc.collect()
        assert ref() is None

    everywhere(upload_strided, end, 12)
    assert len(done) >= 12


@pytest.mark.parametrize("batched", [False, True], ids=["kernel", "batch"])
def test_a_tensor_released_as_a_kernel_runs_on_it_spoils_no_other(batched, device):
    """Its buffer is not another tensor's until the kernel is submitted."""
    fill, made = dlw.webgpu.Kernel(FILL), []
    there = []

    def prepare():
        there.clear()
        x = dlw.empty(COUNT, device=device)
        there.append(x)
        if batched:
            with dlw.webgpu.batch() as batch:
                fill(x, 7)
            there.append(batch)

    def run():
        if batched:
            there[1].run()
        else:
            fill(there[0], 7)

    def release():
        for each in there:
            each.release()
        made.extend(dlw.empty(COUNT, device=device) for _ in range(2))

    prepare()
    with Meanwhile(0, None) as places:
        run()
    release()
    for at in some(places, 100):
        prepare()
        # ReleasedError: at its beginning
        with Meanwhile(at, release), suppress(dlw.ReleasedError):
            run()
        for each in made:
            assert not np.asarray(each).any(), at
            each.release()
        made.clear()


def record_in(batch, x, fill):
    with batch:
        fill(x, 7)
        with suppress(BufferError):
            np.asarray(x)


USES = {
    "update": lambda batch, *_: batch.update(0, {1: 5}),
    "update a tensor": lambda batch, x, _: batch.update(0, {0: x}),
    "run": lambda batch, *_: batch.run(),
    "len": lambda batch, *_: (len(batch), repr(batch)),
}


@pytest.mark.parametrize("use", [*USES, "record"])
def test_a_batch_released_within_its_use(use, device):
    """ReleasedError, or what it did is done; and it holds nothing."""
    fill = dlw.webgpu.Kernel(FILL)
    with dlw.empty(COUNT, device=device) as x:
        fill(x, 0)
        before = live()

        def prepare():
            batch = dlw.webgpu.batch()
            if use in USES:
                record_in(batch, x, fill)
            return batch

        run = USES.get(use, record_in)
        batch = prepare()
        with Meanwhile(0, None) as places:
            run(batch, x, fill)
        batch.release()
        reached = 0
        for at in some(places, 20):
            batch = prepare()
            with Meanwhile(at, batch.release), suppress(dlw.ReleasedError):
                run(batch, x, fill)
            reached += batch.released
            if not batch.released:
                batch.release()
            gc.collect()
            assert live() == before, at
        assert reached > 5


@pytest.mark.parametrize("outer", ["number", "tensor"])
def test_an_update_within_an_update_of_the_same_call(outer, device):
    """Both hold, in any order."""
    fill = dlw.webgpu.Kernel(FILL)
    x, y = (dlw.empty(COUNT, device=device) for _ in range(2))
    ways = {"number": {1: 5}, "tensor": {0: y}}
    update = {
        name: lambda args=args: batch.update(0, args) for name, args in ways.items()
    }
    inner = "tensor" if outer == "number" else "number"
    with dlw.webgpu.batch() as batch:
        fill(x, 1)
    with Meanwhile(0, None) as places:
        update[outer]()
    update[inner]()
    held = live()
    for at in some(places, 40):
        fill(y, 0)
        batch.update(0, {0: x, 1: 1})
        with Meanwhile(at, update[inner]) as reached:
            update[outer]()
        if reached.count < at:
            update[inner]()
        batch.run()
        assert (np.asarray(y) == 5).all(), at
        assert live() == held, at
    batch.release()
    x.release()
    y.release()


def test_arguments_may_release_the_batch(device):
    class Place:
        def __index__(self):
            batch.release()
            return 1

    with dlw.empty(COUNT, device=device) as x, dlw.webgpu.batch() as batch:
        dlw.webgpu.Kernel(FILL)(x, 1)
    with pytest.raises(dlw.ReleasedError, match="the batch was released"):
        batch.update(0, {Place(): 5})


def in_threads(*works, turns=100):
    """Runs each in a thread, so often; they begin together."""
    errors, barrier = [], threading.Barrier(len(works))

    def all_turns(work):
        try:
            barrier.wait(60)
            for turn in range(turns):
                work(turn)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=all_turns, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(200)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_a_kernel_runs_within_itself(device):
    """On more tensors than it keeps bind groups for."""
    fill = dlw.webgpu.Kernel(FILL)
    tensors = [[dlw.empty(16, device=device) for _ in range(10)] for _ in range(2)]

    def run(own):
        for i, each in enumerate(own):
            fill(each, i)
        for i, each in enumerate(own):
            assert (np.asarray(each) == i).all()

    run(tensors[0])
    everywhere(lambda: run(tensors[0]), lambda: run(tensors[1]), 100, "group")
    for own in tensors:
        for each in own:
            each.release()


def test_threads_share_a_kernel(device):
    """With more bind groups than it keeps, in 4 threads."""
    fill = dlw.webgpu.Kernel(FILL)
    tensors = [[dlw.empty(16, device=device) for _ in range(5)] for _ in range(4)]

    def work(own, seed):
        def turn(number):
            tensor = own[number % len(own)]
            fill(tensor, seed * 1000 + number)
            if number % 10 == 0:
                assert (np.asarray(tensor) == seed * 1000 + number).all()

        return turn

    in_threads(*(work(own, seed) for seed, own in enumerate(tensors)), turns=200)
    for own in tensors:
        for tensor in own:
            tensor.release()


def test_threads_share_pools(device):
    """Each buffer is one tensor's at a time, and what is idle is counted."""

    def turn(seed):
        def work(number):
            value = seed * 1000 + number
            shape = 16 << number % 4
            tensors = [
                dlw.from_dlpack(np.full(shape, value + i, "f4"), device=device)
                for i in range(3)
            ]
            for i, tensor in enumerate(tensors):
                assert (np.asarray(tensor) == value + i).all()
                tensor.release()

        return work

    in_threads(*map(turn, range(4)), turns=60)
    gc.collect()
    row = dlw.webgpu.stats()[device.id]
    from dlpack_web._backends.desktop import idle as pools

    idle = pools.devices[device.id].pool._idle
    assert row["idleBytes"] == sum(size * len(kind) for (size, _), kind in idle.items())


def test_threads_replay_and_release_a_batch(device):
    fill = dlw.webgpu.Kernel(FILL)
    batches = [None]

    def record(number):
        with dlw.empty(COUNT, device=device) as x, dlw.webgpu.batch() as batch:
            fill(x, 7)
        old, batches[0] = batches[0], batch
        if old is not None:
            old.release()
        with dlw.empty(COUNT, device=device) as fresh:
            assert not np.asarray(fresh).any()

    def run(number):
        batch = batches[0]
        if batch is not None:
            with suppress(dlw.ReleasedError, IndexError):  # it has no calls any more
                batch.update(0, {1: 7 + number})
                batch.run()

    in_threads(record, run, run, turns=150)
    batches[0].release()


def test_threads_have_one_record_for_a_buffer(device):
    """The faults of a foreign buffer are those of all tensors over it."""
    from dlpack_web._backends.model.buffers.table import faults_of

    buffers = [make_buffer(device, 64) for _ in range(50)]
    found = [[], [], [], []]

    def turn(own):
        return lambda number: own.append(faults_of(buffers[number]))

    in_threads(*map(turn, found), turns=len(buffers))
    for same in zip(*found, strict=True):
        assert len({*map(id, same)}) == 1


def released(tensor):
    tensor.release()
    for _ in range(1000):  # CPython looks for interrupts
        pass


def test_an_interrupt_as_a_tensor_ends_reaches_the_program(device):
    """And the tensor has ended."""
    before, calls = live(), []

    def release():
        calls.append(1)
        signal.raise_signal(signal.SIGINT)

    tensor = dlw.from_gpu_buffer(
        make_buffer(device, 16), 4, "float32", device=device, release=release
    )
    with pytest.raises(KeyboardInterrupt):
        released(tensor)
    assert (calls, live()) == ([1], before)


@pytest.mark.parametrize("taken", [False, True], ids=["lent", "taken"])
def test_a_kernel_keeps_no_buffer_of_others(taken, device):
    """As a bind group that it caches would: its owner may free it."""
    fill = dlw.webgpu.Kernel(FILL)
    if taken:
        tensor = dlw.empty(16, device=device)
        buffer = tensor.gpu_buffer
    else:
        buffer = make_buffer(device, 64)
        tensor = dlw.from_gpu_buffer(buffer, 16, "float32", device=device)
    fill(tensor, 3)
    with dlw.webgpu.batch() as batch:
        fill(tensor, 4)
    batch.run()
    batch.release()
    tensor.release()
    kept = weakref.ref(buffer)
    del buffer, tensor, batch
    gc.collect()
    assert kept() is None
    with dlw.empty(16, device=device) as own:
        fill(own, 5)
        assert (np.asarray(own) == 5).all()
