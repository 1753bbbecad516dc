"""Runs the calls of array_calls.py: natively, and those of Pyodide's packages in a page.

test_as_an_array.py does the former, tests/browser/libraries/array_libraries.py the latter.
"""

import functools
import importlib
import io
import re

import numpy as np
import pytest
from array_calls import SAME

import dlpack_web as dlw

VALUES = {
    "t": np.arange(1, 7.0),
    "m": np.arange(6.0).reshape(2, 3),
    "f": np.arange(6, dtype="float32"),
    "i": np.array([2, 0, 1]),
    "mask": np.array([1, 0, 1, 0, 0, 1], bool),
    "s": np.array(3),
    "z": np.arange(3) + 1j,
    "pixels": np.arange(60, dtype="uint8").reshape(4, 5, 3),
}


def calls(table):
    """(library, expression, what comes of it): parameters of a test."""
    return [
        pytest.param(library, *call, id=f"{library}: {call[0]}")
        for library, rows in table.items()
        for call in rows.items()
    ]


def saved(write, x):
    file = io.BytesIO()
    write(file, x)
    return file.getvalue()


def put(target, key, x):
    target[key] = x
    return target[key]


def then(x, _):
    """x, after what the other argument did."""
    return np.asarray(x)


def turned(x):
    return x.T if type(x) is np.ndarray else x.permute_dims(range(x.ndim)[::-1])


def frozen(x):
    """A read-only copy."""
    array = np.array(x)
    array.flags.writeable = False
    return array if type(x) is np.ndarray else dlw.from_dlpack(array)


def released(t):
    t.release()
    return t


@functools.cache
def modules(library, folder=None):
    """The names that the expressions of a library use beside the values.

    folder: where it compiles, if it does.
    """
    load = importlib.import_module
    names = {"np": np, "saved": saved, "put": put, "then": then}
    names |= {"turned": turned, "frozen": frozen, "released": released}
    if library == "Cython":
        return names | {"ext": load("compiled").cython_extension(folder)}
    if library == "pybind11":
        pybind11 = load("pybind11")
        return names | {"ext": load("compiled").pybind11_extension(pybind11, folder)}
    if library == "scipy":
        parts = (
            "fft integrate interpolate linalg ndimage optimize signal sparse spatial"
        )
        for part in (*parts.split(), "special", "stats"):
            load(f"scipy.{part}")
        return names | {"sp": load("scipy")}
    if library == "sklearn":
        parts = "cluster decomposition metrics model_selection neighbors preprocessing"
        for part in (*parts.split(), "utils"):
            load(f"sklearn.{part}")
        return names | {"sk": load("sklearn"), "lm": load("sklearn.linear_model")}
    if library == "h5py":
        file = load("h5py").File
        names["h5"] = lambda: file("a", "w", driver="core", backing_store=False)
    if library == "numba":
        njit = load("numba").njit
        names["added"] = njit(_added)
        names["doubled"] = load("numba").vectorize(["float64(float64)"])(_doubled)
    if library == "xarray":  # keeps the frames in which it first looks for others
        load("xarray").DataArray(VALUES["t"])
    if library == "lightgbm":
        names["QUIET"] = {"verbose": -1, "num_threads": 1}
    short = {"pandas": "pd", "xarray": "xr", "polars": "pl"}
    short |= {"xgboost": "xgb", "lightgbm": "lgb"}
    names[short.get(library, library)] = load(library)
    beside = {"dask": "da=dask.array", "jax": "jnp=jax.numpy", "PIL": "Image=PIL.Image"}
    if library == "matplotlib":
        load("matplotlib").use("agg")
        beside["matplotlib"] = "plt=matplotlib.pyplot"
    if library in beside:
        name, _, module = beside[library].partition("=")
        names[name] = load(module)
    return names


def _added(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total


def _doubled(x):
    return 2 * x


def seen(value):
    """What a person sees of a result, with all digits: ndarrays with their class and dtype."""
    if isinstance(value, (tuple, list)):
        return [seen(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return (type(value), value.dtype, value.dtype.char, value.shape, value.tolist())
    return re.sub(r" at 0x\w+", "", f"{type(value)} {value!r}")


def _tensors():
    return {name: dlw.from_dlpack(value.copy()) for name, value in VALUES.items()}


def run(modules, expression, expected):
    """AssertionError where a Tensor gives something else than the table says."""
    _compare(modules, expression, expected)
    if "plt" in modules:  # which keeps figures and what they show
        modules["plt"].close("all")


def _compare(modules, expression, expected):
    if expected == SAME:
        arrays = {name: value.copy() for name, value in VALUES.items()}
        wanted = seen(eval(expression, modules | arrays))
        found = eval(expression, modules | _tensors())
        assert not isinstance(found, dlw.Tensor)
        assert seen(found) == wanted
        return
    # Tables of errors by library would say less: each has classes of its own.
    with pytest.raises(Exception) as caught:  # noqa: PT011
        eval(expression, modules | _tensors())
    text = " ".join(str(caught.value).split())
    assert re.search(expected, text), f"{caught.typename}: {text}"
