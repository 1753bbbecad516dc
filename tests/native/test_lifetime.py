"""Who keeps memory alive, and for how long: counted, never timed."""

import subprocess
import textwrap
import threading
import weakref

import numpy as np
import pytest

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


def test_tensor_of_a_tensor_is_one_more_hold(array):
    tensor = dlw.from_dlpack(array)
    before = dlw.live_tensors()
    with dlw.from_dlpack(tensor) as again, dlw.from_dlpack(tensor, copy=False) as third:
        assert dlw.live_tensors() == before + 2
        tensor.release()
        assert np.shares_memory(again.numpy(), array)
        assert np.shares_memory(third.numpy(), array)


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
