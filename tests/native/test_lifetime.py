"""Who keeps memory alive, and for how long: counted, never timed."""

import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
from forge import DELETER, Forged, Versioned, get_pointer, versioned

import dlpack_web as dlw


class Array(np.ndarray):
    """An ndarray that can be weakly referenced."""


@pytest.fixture
def array():
    return np.arange(6.0).view(Array)


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
def test_tensor_keeps_the_array_alive(make):
    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    tensor = make(array)
    del array
    assert alive() is not None
    assert np.asarray(tensor)[5] == 5
    tensor.release()
    assert alive() is None


@pytest.mark.parametrize(
    "export",
    [np.asarray, np.from_dlpack, memoryview, lambda t: t.__dlpack__(), dlw.from_dlpack],
    ids=["asarray", "np.from_dlpack", "memoryview", "capsule", "dlw.from_dlpack"],
)
def test_exports_outlive_the_tensor(export):
    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    with dlw.from_dlpack(array) as tensor:
        exported = export(tensor)
    del array, tensor
    assert alive() is not None
    del exported
    assert alive() is None


def test_everything_after_release_is_refused(array):
    tensor = dlw.from_dlpack(array)
    tensor.release()
    assert tensor.released
    assert repr(tensor) == "Tensor(released)"
    for use in (
        lambda: tensor.shape,
        lambda: tensor.dtype,
        lambda: tensor.device,
        lambda: tensor.numpy(),
        lambda: tensor.__dlpack__(),
        lambda: tensor.__dlpack_device__(),
        lambda: tensor.to_device("cpu"),
        lambda: memoryview(tensor),
        lambda: dlw.from_dlpack(tensor),
        lambda: tensor.__enter__(),
    ):
        with pytest.raises(dlw.ReleasedError, match="was released"):
            use()
    tensor.release()


def test_with_releases_on_errors_too(array):
    with pytest.raises(KeyError), dlw.from_dlpack(array) as tensor:
        raise KeyError
    assert tensor.released


def test_tensor_can_be_weakly_referenced(array):
    tensor = dlw.from_dlpack(array)
    alive = weakref.ref(tensor)
    del tensor
    assert alive() is None


def test_unconsumed_capsules_free_once(array):
    tensor = dlw.from_dlpack(array)
    before = sys.getrefcount(array)
    for max_version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=max_version)
        del capsule
    assert sys.getrefcount(array) == before


def test_ten_thousand_exchanges_leave_nothing(array):
    references, live = sys.getrefcount(array), dlw.live_tensors()
    for _ in range(10_000):
        with dlw.from_dlpack(array) as tensor:
            np.from_dlpack(tensor)
            memoryview(tensor).release()
            tensor.__dlpack__(max_version=(1, 0), copy=True)
        dlw.from_buffer(array).release()
    assert sys.getrefcount(array) == references
    assert dlw.live_tensors() == live


def test_ten_thousand_failures_leave_nothing():
    array = np.zeros(3, ">i4")
    references, live = sys.getrefcount(array), dlw.live_tensors()
    for _ in range(10_000):
        for make in (dlw.from_dlpack, dlw.from_buffer):
            with pytest.raises(BufferError):
                make(array)
    gc.collect()
    assert sys.getrefcount(array) == references
    assert dlw.live_tensors() == live


def test_live_tensors_counts_holds(array):
    start = dlw.live_tensors()
    tensor = dlw.from_dlpack(array)
    assert dlw.live_tensors() == start + 1
    capsule = tensor.__dlpack__(max_version=(1, 0))
    view = memoryview(tensor)
    assert dlw.live_tensors() == start + 3
    del capsule
    view.release()
    tensor.release()
    assert dlw.live_tensors() == start


def test_consumer_calls_the_deleter_itself(array):
    """As a consumer in C does: rename, use, call the deleter in the struct."""
    import ctypes

    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    tensor = dlw.from_dlpack(array)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    address = get_pointer(capsule, b"dltensor_versioned")
    assert rename(capsule, b"used_dltensor_versioned") == 0
    del capsule
    tensor.release()
    struct = Versioned.from_address(address)
    assert struct.dl_tensor.shape[0] == 6
    DELETER(struct.deleter)(address)


def test_deleter_keeps_a_pending_exception(array):
    """A capsule that dies while an exception unwinds does not disturb it."""
    array.flags.writeable = True

    def fail():
        capsule = dlw.from_dlpack(Forged()).__dlpack__(max_version=(1, 0))
        assert capsule is not None
        raise KeyError("pending")

    with pytest.raises(KeyError, match="pending"):
        fail()


def test_deleter_may_run_on_a_thread_without_the_gil(host_python):
    """DLPack: on any thread, at any time. CFUNCTYPE gives up the GIL for the call."""
    import ctypes

    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    tensor = dlw.from_buffer(array)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    struct = versioned(capsule)
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    rename(capsule, b"used_dltensor_versioned")
    address, deleter = ctypes.addressof(struct), ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    tensor.release()
    del array
    thread = threading.Thread(target=deleter(struct.deleter), args=(address,))
    thread.start()
    thread.join(timeout=30)
    assert alive() is None


def test_many_threads_share_and_release(host_python):
    array = np.arange(1000.0)
    tensor = dlw.from_dlpack(array)
    sums = []

    def work():
        for _ in range(500):
            with dlw.from_dlpack(tensor) as mine:
                sums.append(np.asarray(mine)[-1])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sums == [999.0] * 4000


def test_interpreter_shutdown_with_live_tensors(host_python):
    script = textwrap.dedent("""
        import ctypes, sys
        import numpy as np
        import dlpack_web as dlw

        keep = [dlw.from_dlpack(np.arange(5.0)), dlw.from_buffer(bytearray(8))]
        keep += [keep[0].__dlpack__(), keep[1].__dlpack__(max_version=(1, 0))]
        keep += [np.asarray(keep[0]), memoryview(keep[1]), np.from_dlpack(keep[0])]
        keep.append(keep)  # only the last collection, if any, gets this
        sys.modules["leftover"] = keep
        leaked = ctypes.py_object(keep[0])
        ctypes.pythonapi.Py_IncRef(leaked)
    """)
    done = subprocess.run(
        [host_python, "-X", "dev", "-c", script],
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_tensor_of_a_tensor_is_one_more_hold(array):
    tensor = dlw.from_dlpack(array)
    before = dlw.live_tensors()
    with dlw.from_dlpack(tensor) as again, dlw.from_dlpack(tensor, copy=False) as third:
        assert dlw.live_tensors() == before + 2
        tensor.release()
        assert np.shares_memory(again.numpy(), array)
        assert np.shares_memory(third.numpy(), array)


def test_foreign_deleter_after_release_runs_on_last_hold():
    producer = Forged()
    tensor = dlw.from_dlpack(producer)
    array = np.asarray(tensor)
    tensor.release()
    assert producer.deleted == 0
    assert array[1, 2] == 5
    del array
    assert producer.deleted == 1


def test_subinterpreters_and_second_loads_are_refused(host_python):
    """State is one per process; loading the module twice must not mix it up."""
    script = textwrap.dedent("""
        import importlib.machinery, importlib.util
        import dlpack_web._core as first

        name, path = "dlpack_web._core", first.__file__
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_loader(name, loader)
        try:
            loader.exec_module(importlib.util.module_from_spec(spec))
        except ImportError as error:
            assert "once per process" in str(error)
        else:
            raise SystemExit("loaded twice")
    """)
    subprocess.run([host_python, "-c", script], check=True, timeout=120)
