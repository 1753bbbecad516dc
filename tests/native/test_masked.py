"""numpy.ma: an array with a masked element is refused wherever an array comes in, because
its memory does not say which elements are masked."""

import subprocess

import numpy as np
import numpy.ma.mrecords as records
import pytest
from bridge import lend, release
from conftest import needs_new_numpy, run

import dlpack_web as dlw
from dlpack_web import _core

REFUSED = (
    r"elements of the <class .*> are masked, .* use x\.filled\(value\), or x\.data"
)


class Own(np.ma.MaskedArray):
    """A class of somebody else's."""


def saved(x):
    return run(dlw.save(None, x))


def reads_into(x):
    with dlw.empty(np.shape(x), "float64") as tensor:
        run(tensor.to_host(x))


def borrowed(x):
    """As JavaScript does."""
    release(lend(x))


#: Ways in.
WAYS = {
    "from_dlpack": dlw.from_dlpack,
    "from_dlpack, copy": lambda x: dlw.from_dlpack(x, copy=True),
    "from_dlpack, no copy": lambda x: dlw.from_dlpack(x, copy=False),
    "from_dlpack, device": lambda x: dlw.from_dlpack(x, device="cpu"),
    "from_dlpack, dtype": lambda x: dlw.from_dlpack(x, dtype="float32"),
    "from_buffer": dlw.from_buffer,
    "write": lambda x: dlw.empty(np.shape(x), "float64").write(x),
    "write, convert": lambda x: dlw.empty(np.shape(x)).write(x, convert=True),
    "to_host": reads_into,
    "save": saved,
    "save, named": lambda x: saved({"a": np.ones(2), "x": x}),
    "open": lambda x: run(dlw.open(x, dtype="uint8", shape=x.shape)),
    "JavaScript": borrowed,
    "to_arrow": lambda x: dlw.to_arrow(dlw.empty(np.size(x)), x > 1),
    "kernel": _core._arguments,
}


def masked(shape, mask, kind=np.ma.MaskedArray):
    values = np.arange(np.prod(shape, dtype=int), dtype="f8").reshape(shape)
    return np.ma.array(values, mask=mask).view(kind)


MASKED = {
    "one": masked(4, [0, 1, 0, 0]),
    "last": masked(9, [0] * 8 + [1]),
    "all": masked((2, 3), True),
    "strided": masked((4, 6), np.arange(24).reshape(4, 6) == 7)[::-2, 1::3],
    "columns": masked((2, 3), [[0, 0, 1], [0, 0, 0]]).T,
    "number": masked((), True),
    "another class": masked(4, [0, 1, 0, 0], Own),
    "hard": np.ma.array(np.arange(3.0), mask=[0, 0, 1], hard_mask=True),
    "not a number": np.ma.masked_invalid([1.0, np.nan]),
    "broadcast": np.ma.array(np.broadcast_to(3.0, (2, 2)), mask=[[0, 0], [0, 1]]),
}


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("way", WAYS)
def test_masked_elements_are_refused(way, name):
    before = dlw.live_tensors()
    with pytest.raises(BufferError, match=REFUSED):
        WAYS[way](MASKED[name])
    assert dlw.live_tensors() == before


@pytest.mark.parametrize(
    "x",
    [
        masked(4, np.ma.nomask),
        masked((2, 3), False),
        masked((2, 3), False).T,
        masked((0, 3), True),
        masked((), False),
        masked(3, False, Own),
        masked((4, 6), np.arange(24).reshape(4, 6) == 7)[::2],  # 7 is elsewhere
    ],
    ids=lambda x: f"{x.shape}",
)
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(each, marks=needs_new_numpy if "no copy" in each else ())
        for each in [*WAYS][:11]
    ],
)
def test_without_a_masked_element_they_are_arrays(way, x):
    result = WAYS[way](x)
    if isinstance(result, dlw.Tensor):
        np.testing.assert_array_equal(result.numpy(), x.data.astype(result.dtype))
        if way in ("from_dlpack", "from_buffer") and x.size:
            assert np.shares_memory(result.numpy(), x)


def test_filled_and_data_are_the_ways():
    x = MASKED["one"]
    assert dlw.from_dlpack(x.filled(7)).numpy().tolist() == [0, 7, 2, 3]
    assert dlw.from_dlpack(x.data).numpy().tolist() == [0, 1, 2, 3]
    assert np.shares_memory(dlw.from_dlpack(x.data).numpy(), x)


PAIRS = np.dtype([("a", int), ("b", float)])


@pytest.mark.parametrize(
    ("x", "count"),
    [
        (masked((5, 5), np.eye(5)), 5),
        (np.ma.masked, 1),
        (np.ma.array([(1, 2.0), (3, 4.0)], PAIRS, mask=[(0, 1), (0, 0)]), 1),
        (np.ma.array([(1, 2.0)] * 3, PAIRS, mask=[(1, 1), (0, 0), (1, 0)])[::-1], 2),
        (np.ma.array([(1, 2.0)], PAIRS, mask=[(0, 1)])[0], 1),
        (records.fromarrays([np.ma.array([1, 2], mask=[1, 0]), np.arange(2)]), 1),
        (np.ma.array(["a", "b"], mask=[0, 1]), 1),
        (np.ma.array([1, None], object, mask=[0, 1]), 1),
        (np.ma.array([1, 2], ">i4", mask=[0, 1]), 1),
        (np.ma.array(["2026-01-01"], "M8[D]", mask=[1]), 1),
        (np.ma.array([1 + 1j, 2], mask=[1, 1]), 2),
        (np.ma.array([True, False], mask=[1, 0]), 1),
    ],
    ids=lambda x: None if isinstance(x, int) else f"{type(x).__name__} {x.dtype}",
)
@pytest.mark.parametrize("take", [dlw.from_dlpack, dlw.from_buffer, borrowed, saved])
def test_the_mask_is_named_before_the_dtype(take, x, count):
    """Also of those that cannot be shared anyway."""
    with pytest.raises(BufferError, match=f"^{count} {REFUSED}"):
        take(x)


@pytest.mark.parametrize("name", ["bfloat16", "int4", "float8_e5m2"])
def test_dtypes_of_other_packages(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.ones(3, getattr(ml_dtypes, name))
    for take in (dlw.from_dlpack, dlw.from_buffer, borrowed):
        with pytest.raises(BufferError, match=f"^1 {REFUSED}"):
            take(np.ma.array(values, mask=[0, 1, 0]))
    with dlw.from_dlpack(np.ma.array(values, mask=False)) as tensor:
        assert tensor.dtype == name


def test_a_mask_that_raises_is_not_overlooked():
    class Broken(np.ma.MaskedArray):
        @property
        def mask(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dlw.from_dlpack(np.arange(3.0).view(Broken))


def test_numpy_loads_masked_arrays_late(host_python):
    """They are found when they come, and nothing loads them for us."""
    program = """
import sys, numpy as np, dlpack_web as dlw
class Own(np.ndarray): pass
dlw.from_dlpack(np.arange(3.0)); dlw.from_dlpack(np.arange(3.0).view(Own))
late = "numpy.ma" not in sys.modules
try:
    dlw.from_dlpack(np.ma.array([1.0, 2.0], mask=[0, 1]))
except BufferError as error:
    print(late or np.__version__, error)
"""
    command = [host_python, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "1 elements of the" in said


@pytest.mark.parametrize(
    ("module", "array"),
    [
        ("numpy._core._multiarray_umath", "bytearray(4)"),
        ("numpy.core._multiarray_umath", "bytearray(4)"),
        ("numpy.ma", "type('Own', (bytearray,), {})(4)"),
    ],
)
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "MemoryError", "ImportError"])
def test_errors_of_a_module_that_loads_late(host_python, module, array, error):
    """importlib.util.LazyLoader loads a module when an attribute of it is looked up."""
    program = f"""
import sys, types
import dlpack_web as dlw
class Lazy(types.ModuleType):
    def __getattr__(self, name):
        raise {error}
for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath", "numpy.ma"):
    sys.modules.pop(name, None)
sys.modules[{module!r}] = Lazy({module!r})
try:
    print(dlw.from_buffer({array}).shape)
except BaseException as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [host_python, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == ("(4,)\n" if error == "ImportError" else f"{error}\n")
