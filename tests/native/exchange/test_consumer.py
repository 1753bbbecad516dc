"""`__dlpack_c_exchange_api__` in the hands of a consumer compiled in C."""

import ctypes
import gc
import importlib.util
import shlex
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pytest
from bridge import function, lend
from conftest import in_threads
from forge import CPU, READ_ONLY, WEBGPU, Forged, Legacy, Versioned, consume
from test_header import official_include

import dlpack_web as dlw
from dlpack_web import _core

SOURCE = Path(__file__).with_name("exchange_consumer.c")
FLOAT32 = (2, 32, 1)


@pytest.fixture(scope="module")
def consumer(tmp_path_factory, host_python):
    """The compiled module."""
    target = tmp_path_factory.mktemp("consumer") / "exchange_consumer.so"
    link = shlex.split(sysconfig.get_config_var("LDSHARED"))
    includes = [f"-I{official_include()}", f"-I{sysconfig.get_path('include')}"]
    flags = ["-std=c11", "-O1", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [*link, *flags, *includes, SOURCE, "-o", target], check=True, timeout=120
    )
    spec = importlib.util.spec_from_file_location("exchange_consumer", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def array():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def tensor(array):
    """Every second column from the right: strided, and not at the start of memory."""
    with dlw.from_dlpack(array[:, ::-2]) as tensor:
        yield tensor


READING = ((CPU, 0), FLOAT32, (3, 2), (4, -2), 36.0)  # what C sees of it


@pytest.mark.parametrize("how", ["gil", "released", "thread"])
def test_held_memory_outlives_the_tensor(consumer, array, how):
    live, references = dlw.live_tensors(), sys.getrefcount(array)
    tensor = dlw.from_dlpack(array[:, ::-2])
    held = consumer.hold(tensor)
    assert dlw.live_tensors() == live + 2
    tensor.release()
    del tensor
    array[0, 1] = 101
    *reading, total = READING
    assert consumer.read(held) == ((*reading, total + 100), (1, 3), 0)
    consumer.drop(held, how)
    assert (dlw.live_tensors(), sys.getrefcount(array)) == (live, references)


@pytest.mark.parametrize("how", ["gil", "released", "thread"])
@pytest.mark.parametrize("make", [dlw.from_buffer, dlw.from_dlpack, np.asarray])
def test_last_hold_frees_the_array_from_anywhere(consumer, make, how):
    """The deleter takes the GIL itself where it has to touch Python."""
    array = np.ones(5, np.float32)
    references = sys.getrefcount(array)
    with dlw.from_dlpack(make(array)) as tensor:
        held = consumer.hold(tensor)
    assert sys.getrefcount(array) > references
    consumer.drop(held, how)
    assert sys.getrefcount(array) == references


def test_read_only_memory_says_so(consumer, array):
    array.flags.writeable = False
    with dlw.from_dlpack(array) as tensor:
        held = consumer.hold(tensor)
    assert consumer.read(held)[2] == READ_ONLY
    consumer.drop(held, "gil")


def test_tensor_comes_back_over_the_same_memory(consumer, tensor, array):
    live, references = dlw.live_tensors(), sys.getrefcount(array)
    back, fresh = consumer.give(tensor, consumer.hold(tensor)), object()
    assert type(back) is dlw.Tensor
    assert sys.getrefcount(back) == sys.getrefcount(fresh)
    np.testing.assert_array_equal(back.numpy(), array[:, ::-2])
    assert np.shares_memory(back.numpy(), array)
    back.release()
    assert (dlw.live_tensors(), sys.getrefcount(array)) == (live, references)


def test_allocated_memory_becomes_a_tensor(consumer, tensor):
    made, error = consumer.allocate(tensor, 7, FLOAT32, CPU)
    assert error == (0, "", "")
    assert consumer.read(made) == (((CPU, 0), FLOAT32, (7,), (1,), 7.0), (1, 3), 0)
    with consumer.give(tensor, made) as back:
        assert back.numpy().tolist() == [1] * 7
        assert not back.read_only


@pytest.mark.parametrize(
    "wanted", [(7, FLOAT32, WEBGPU), (7, (3, 64, 1), CPU), (2**62, FLOAT32, CPU)]
)
def test_failed_allocation_is_told_once_and_without_python(consumer, tensor, wanted):
    made, (calls, kind, message) = consumer.allocate(tensor, *wanted)
    assert (made, calls, kind) == (None, 1, "BufferError")
    assert "dlpack_web allocates CPU tensors" in message


def test_deleters_run_beside_makers(consumer):
    """Some threads let go without the GIL of what others share at the same moment."""
    array = np.ones(5, np.float32)
    live, references = dlw.live_tensors(), sys.getrefcount(array)
    shared = dlw.from_dlpack(array)

    def work(how):
        for _ in range(200):
            with dlw.from_buffer(array) as mine, dlw.from_dlpack(shared) as ours:
                held = [consumer.hold(each) for each in (mine, ours, shared)]
            for address in held:
                consumer.drop(address, how)

    in_threads(work, ["gil", "released", "thread"] * 2)
    shared.release()
    assert (dlw.live_tensors(), sys.getrefcount(array)) == (live, references)


def test_deleters_run_after_python_has_gone(consumer, host_python):
    """The memory stays: there is nobody left to give it back to."""
    script = textwrap.dedent("""
        import importlib.util, sys
        import numpy as np
        import dlpack_web as dlw

        spec = importlib.util.spec_from_file_location("exchange_consumer", sys.argv[1])
        consumer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(consumer)
        made = [dlw.from_dlpack(np.arange(3.0)), dlw.from_buffer(bytearray(8))]
        made += [dlw.from_dlpack(np.arange(3.0).__dlpack__()), dlw.empty(3)]
        for tensor in made:
            consumer.drop_at_exit(consumer.hold(tensor))
    """)
    done = subprocess.run(
        [host_python, "-X", "dev", "-c", script, consumer.__file__],
        check=False,
        capture_output=True,
        timeout=120,
    )
    said = b"Python is gone, 4 deleted\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, b"")


# --- what is pending stays pending ------------------------------------------------------


@pytest.fixture
def unraisable(monkeypatch):
    """What Python could only report."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: seen.append(told.exc_value))
    yield seen
    assert seen == []


VERSIONS = pytest.mark.parametrize("max_version", [None, (1, 0)], ids=["0.8", "1.0"])
IMPORTS = pytest.mark.parametrize("make", [dlw.from_buffer, dlw.from_dlpack])


@IMPORTS
@VERSIONS
def test_deleter_keeps_the_pending_exception(consumer, unraisable, make, max_version):
    array = np.ones(5, np.float32)
    references = sys.getrefcount(array)
    with make(array) as tensor:
        struct = consume(tensor.__dlpack__(max_version=max_version))
    del struct.capsule
    assert sys.getrefcount(array) > references
    with pytest.raises(KeyError, match="pending"):
        consumer.drop_pending((struct.deleter, ctypes.addressof(struct)))
    assert sys.getrefcount(array) == references


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
@pytest.mark.parametrize(
    "export",
    [lambda t: t, memoryview, lambda t: t.__dlpack__(max_version=(1, 0))],
    ids=["Tensor", "memoryview", "capsule"],
)
def test_last_holder_keeps_the_pending_exception(consumer, unraisable, flavour, export):
    """The foreign deleter that it calls runs Python code."""
    producer = Forged(flavour=flavour)
    tensor = dlw.from_dlpack(producer)
    last = [export(tensor)]
    del tensor
    assert producer.deleted == 0
    with pytest.raises(KeyError, match="pending"):
        consumer.drop_pending(last)
    assert producer.deleted == 1


# --- no memory for objects ------------------------------------------------------------


def each_failure(consumer, call, *args):
    """Calls it with memory for no object, for one, and so on: the number of each call
    that raised MemoryError, and what the first did that succeeded."""
    for count in range(100):
        gc.collect()
        live = dlw.live_tensors()
        try:
            yield None, consumer.without_memory(call, args, count)
            return
        except MemoryError:
            pass
        assert dlw.live_tensors() == live
        yield count, None


def test_what_finds_no_memory_stays_the_callers(consumer, tensor, array):
    """DLPack: where to_object fails, the managed tensor is still the caller's."""
    address, failures = consumer.hold(tensor), 0
    for _, back in each_failure(consumer, consumer.give, tensor, address):
        assert consumer.read(address)[0] == READING
        failures += back is None
    assert failures > 0
    with back:
        assert np.shares_memory(back.numpy(), array)


def test_a_gpu_buffer_that_finds_no_memory_stays_the_callers(consumer):
    """Who gives it back then: twice would free somebody else's."""
    dropped, nobody = [], function("on_drop", None, ctypes.c_void_p)
    _core._on_gpu_drop(dropped.append)
    args = 7, 0, (2, 3), None, 2 | 32 << 8 | 1 << 16, 0, 0, 0
    tensor, failures = None, 0
    for _, tensor in each_failure(consumer, _core._wrap, *args):
        assert dropped == []
        failures += tensor is None
    assert failures > 0
    tensor.release()
    assert dropped == [7]
    nobody(None)


@pytest.mark.parametrize("what", ["view", "empty", "from_dlpack", "buffer", "take"])
def test_nothing_is_lost_where_there_is_no_memory(consumer, tensor, array, what):
    handle = lend(array) if what == "take" else 0
    call, *args = {
        "view": (_core._view, tensor, (1,), (1,), 0),
        "empty": (_core._empty, (3,), 1 | 8 << 8 | 1 << 16, False),
        "from_dlpack": (_core.from_dlpack, array),
        "buffer": (_core.from_buffer, bytearray(3)),
        "take": (_core._take, handle),
    }[what]
    references = sys.getrefcount(array)
    failures = 0
    if what == "take":  # the hold was JavaScript's, and is released either way
        with pytest.raises(MemoryError):
            consumer.without_memory(call, tuple(args), 0)
        assert sys.getrefcount(array) == references - 1
        return
    for failed, made in each_failure(consumer, call, *args):
        if failed is not None:
            failures += 1
        elif what != "wait":
            made.release()
    del made
    assert failures > 0
    assert sys.getrefcount(array) == references
