"""Who keeps memory alive, and for how long: counted, never timed."""

import subprocess
import textwrap
import weakref
from operator import attrgetter, methodcaller

import numpy as np
import pytest
from conftest import in_threads, needs_new_numpy
from forge import Forged

import dlpack_web as dlw


class Array(np.ndarray):
    """An ndarray that can be weakly referenced."""


@pytest.fixture
def array():
    return np.arange(6.0).view(Array)


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
@pytest.mark.parametrize("kind", [np.ndarray, Array])
def test_tensor_keeps_the_array_alive(make, kind):
    array = np.arange(6.0).view(kind)
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


FACTS = "shape strides dtype device byte_offset padded read_only _dtype _owner"
FACTS = [attrgetter(name) for name in FACTS.split()]
USES = [
    *map(methodcaller, ("numpy", "__dlpack__", "__dlpack_device__", "__enter__")),
    lambda t: t.to_device("cpu"),
    lambda t: t[0],
    lambda t: t.reshape(6),
    len,
    memoryview,
    dlw.from_dlpack,
]


@pytest.mark.parametrize(
    ("x", "way"),
    [
        (np.zeros((2, 3)), "make a new one"),
        (Forged(device_type=15, data=7), "upload the elements again"),
    ],
    ids=["cpu", "webgpu"],
)
def test_everything_after_release_is_refused(x, way):
    tensor = dlw.from_dlpack(x)
    for fact in FACTS:
        fact(tensor)
    tensor.release()
    assert tensor.released
    assert repr(tensor) == "Tensor(released)"
    assert issubclass(dlw.ReleasedError, BufferError)
    for use in (*FACTS, *USES):
        with pytest.raises(dlw.ReleasedError, match=f"was released; {way}"):
            use(tensor)
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

    def work(_):
        for _ in range(500):
            with dlw.from_dlpack(tensor) as mine:
                sums.append(np.asarray(mine)[-1])

    in_threads(work, range(8))
    assert sums == [999.0] * 4000


CHAINS = {
    "capsules": lambda x: dlw.from_dlpack(x.__dlpack__(max_version=(1, 0))),
    "legacy capsules": lambda x: dlw.from_dlpack(x.__dlpack__()),
    # Arrays from before 2.1 are read-only, which legacy capsules cannot say.
    "numpy": pytest.param(
        lambda x: np.from_dlpack(dlw.from_dlpack(x)), marks=needs_new_numpy
    ),
    "memoryviews": lambda x: memoryview(dlw.from_buffer(x)),
}


@pytest.mark.parametrize("step", CHAINS.values(), ids=CHAINS.keys())
def test_a_long_chain_of_holds_is_let_go_of(step):
    """Each is given back after the one that held it, not within: no stack is so deep."""
    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    last = dlw.from_dlpack(array)
    for _ in range(100_000):
        last = step(last)
    del array
    assert alive() is not None
    del last
    assert alive() is None


def run_alone(host_python, script):
    command = [host_python, "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_second_import_goes_on_with_the_first(host_python):
    """State is one per process: tensors of before are tensors after."""
    run_alone(
        host_python,
        """
        import gc, sys
        import numpy as np
        import dlpack_web as dlw

        array = np.arange(3.0)
        old = dlw.from_dlpack(array)
        errors = dlw.ReleasedError
        for name in [name for name in sys.modules if name.startswith("dlpack_web")]:
            del sys.modules[name]
        del dlw
        gc.collect()
        import dlpack_web as dlw

        assert dlw.ReleasedError is errors
        new = dlw.from_dlpack(old)
        assert type(new) is dlw.Tensor and type(new) is not type(old)
        assert np.shares_memory(new.numpy(), array)
        assert np.shares_memory(np.from_dlpack(old), array)
        assert dlw.live_tensors() == 3  # old, new, and what links the two
        """,
    )


SUBINTERPRETER = """
try:
    import dlpack_web
except ImportError as error:
    assert "interpreter" in str(error), error
    assert "ABI" not in str(error), error
else:
    raise SystemExit("loaded in a sub-interpreter")
"""


@pytest.mark.parametrize("isolated", [True, False])
def test_subinterpreters_are_refused_in_their_own_words(host_python, isolated):
    """Those that are not isolated would load any extension."""
    run_alone(
        host_python,
        f"""
        import dlpack_web
        try:
            import _interpreters as interpreters
        except ImportError:  # Python 3.12
            import _xxsubinterpreters as interpreters

            made = interpreters.create(isolated={isolated})
        else:
            made = interpreters.create("isolated" if {isolated} else "legacy")
        failed = interpreters.run_string(made, {SUBINTERPRETER!r})
        assert failed is None, failed
        """,
    )
