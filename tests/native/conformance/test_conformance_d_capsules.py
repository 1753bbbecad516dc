"""Rules 62 to 77: capsules and deleters, counted, never timed."""

import ctypes
import itertools
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import needs_new_numpy
from forge import DELETER, Forged, Legacy, Versioned, consume, get_name, get_pointer

import dlpack_web as dlw

FLAVOURS = pytest.mark.parametrize("max_version", [None, (1, 0)], ids=["legacy", "1.x"])
NAMES = {None: b"dltensor", (1, 0): b"dltensor_versioned"}

rename = ctypes.pythonapi.PyCapsule_SetName
rename.argtypes = (ctypes.py_object, ctypes.c_char_p)


class Array(np.ndarray):
    """An ndarray that can be weakly referenced."""


@pytest.fixture
def array():
    return np.arange(6.0).view(Array)


@FLAVOURS
def test_rule_062_names(array, max_version):
    capsule = dlw.from_dlpack(array).__dlpack__(max_version=max_version)
    assert get_name(capsule) == NAMES[max_version]
    tensor = dlw.from_dlpack(capsule)
    assert get_name(capsule) == b"used_" + NAMES[max_version]
    tensor.release()


@FLAVOURS
def test_rule_063_066_unconsumed_capsules_free_once(array, max_version):
    tensor = dlw.from_dlpack(array)
    references, live = sys.getrefcount(array), dlw.live_tensors()
    capsule = tensor.__dlpack__(max_version=max_version)
    assert dlw.live_tensors() == live + 1
    del capsule
    assert (sys.getrefcount(array), dlw.live_tensors()) == (references, live)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("renamed", [b"used_dltensor_versioned", b"something_else"])
def test_rule_063_destructors_leave_what_was_renamed(array, renamed):
    """A used capsule says nothing; one of another name is reported, not followed."""
    tensor = dlw.from_dlpack(array)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    address = get_pointer(capsule, b"dltensor_versioned")
    assert rename(capsule, renamed) == 0
    live = dlw.live_tensors()
    del capsule
    assert dlw.live_tensors() == live
    DELETER(Versioned.from_address(address).deleter)(address)


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
def test_rule_064_null_deleters_are_not_called(flavour):
    with dlw.from_dlpack(Forged(flavour=flavour, no_deleter=True)) as tensor:
        assert tensor.shape == (2, 3)


@FLAVOURS
def test_rule_065_pending_exceptions_survive(max_version):
    """A capsule that dies while an exception unwinds does not disturb it."""
    producer = Forged()

    def fail():
        capsule = dlw.from_dlpack(producer).__dlpack__(max_version=max_version)
        assert capsule is not None
        raise KeyError("pending")

    with pytest.raises(KeyError, match="pending"):
        fail()
    assert producer.deleted == 1


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
def test_rule_067_070_077_consumed_capsules_free_with_the_last_holder(flavour):
    """Not with the capsule, whose destructor then does nothing. Releasing is idempotent."""
    producer = Forged(flavour=flavour)
    capsule = producer.__dlpack__()
    tensor = dlw.from_dlpack(capsule)
    del capsule
    assert producer.deleted == 0
    array = np.asarray(tensor)
    tensor.release()
    tensor.release()
    assert tensor.released
    assert producer.deleted == 0
    assert array[1, 2] == 5
    del array
    assert producer.deleted == 1


def test_rule_068_refused_capsules_keep_their_name():
    producer = Forged(lanes=0)
    capsule = producer.__dlpack__()
    with pytest.raises(BufferError):
        dlw.from_dlpack(capsule)
    assert get_name(capsule) == b"dltensor_versioned"
    del capsule
    assert producer.deleted == 1


@needs_new_numpy
@FLAVOURS
def test_rule_069_second_consumption_is_a_value_error(array, max_version):
    capsule = array.__dlpack__(max_version=max_version)
    with dlw.from_dlpack(capsule) as tensor:
        assert np.shares_memory(tensor.numpy(), array)
    with pytest.raises(ValueError, match="consumed already") as caught:
        dlw.from_dlpack(capsule)
    assert not isinstance(caught.value, BufferError)


@FLAVOURS
def test_rule_071_076_deleters_free_all_of_it(max_version):
    """Struct, shape and strides are one allocation; manager_ctx lets the array go. On wasm a call
    through another signature than void (*)(struct *) traps."""
    array = np.arange(6.0).view(Array)
    alive, live = weakref.ref(array), dlw.live_tensors()
    struct = consume(dlw.from_dlpack(array).__dlpack__(max_version=max_version))
    del struct.capsule, array
    assert struct.dl_tensor.shape[0] == 6
    assert alive() is not None
    DELETER(struct.deleter)(ctypes.addressof(struct))
    assert alive() is None
    assert dlw.live_tensors() == live


@FLAVOURS
def test_rule_072_deleters_run_on_threads_without_the_gil(host_python, max_version):
    """CFUNCTYPE gives up the GIL for the call."""
    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    struct = consume(dlw.from_buffer(array).__dlpack__(max_version=max_version))
    del struct.capsule, array
    deleter, address = DELETER(struct.deleter), ctypes.addressof(struct)
    thread = threading.Thread(target=deleter, args=(address,))
    thread.start()
    thread.join(timeout=120)
    assert alive() is None


def test_rule_073_interpreters_end_with_live_tensors(host_python):
    script = textwrap.dedent(f"""
        import ctypes, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        import numpy as np
        import dlpack_web as dlw
        from bridge import lend

        keep = [dlw.from_dlpack(np.arange(5.0)), dlw.from_buffer(bytearray(8))]
        keep += [keep[0].__dlpack__(), keep[1].__dlpack__(max_version=(1, 0))]
        keep += [np.asarray(keep[0]), memoryview(keep[1]), np.from_dlpack(keep[0])]
        held = (keep[0], bytearray(3), np.arange(3.0), dlw.empty(2))
        keep += map(lend, held)  # as JavaScript does
        keep.append(keep)  # only the last collection, if any, gets this
        sys.modules["leftover"] = keep
        leaked = ctypes.py_object(keep[0])
        ctypes.pythonapi.Py_IncRef(leaked)
    """)
    command = [host_python, "-X", "dev", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_rule_074_deleters_do_not_raise(monkeypatch):
    """Not even when the exporter's own code does: Python reports that elsewhere."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: seen.append(hook.exc_value))

    class Grumpy(np.ndarray):
        def __del__(self):
            raise RuntimeError("mine")

    tensor = dlw.from_dlpack(np.arange(3.0).view(Grumpy))
    capsule = tensor.__dlpack__(max_version=(1, 0))
    tensor.release()
    del capsule
    assert [str(error) for error in seen] == ["mine"]


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
@pytest.mark.parametrize("order", [*itertools.permutations(range(4))], ids=str)
def test_rule_075_092_deleters_run_once_whatever_the_order(flavour, order):
    """The memory lives as long as any view."""
    producer = Forged(flavour=flavour)
    tensor = dlw.from_dlpack(producer)
    holders = [np.asarray(tensor), dlw.from_dlpack(tensor), memoryview(tensor)]
    holders.append(tensor.__dlpack__(max_version=(1, 0)))
    tensor.release()
    for turn in order:
        assert producer.deleted == 0
        holders[turn] = None
    assert producer.deleted == 1
