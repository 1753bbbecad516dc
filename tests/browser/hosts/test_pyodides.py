"""The versions of Pyodide that hosts bring, besides those of the other tests: marimo 314.0.0,
JupyterLite and the newest 314.0.6 and 314.0.7, and the first ones of 315. All that js/src/pyodide/host.ts uses of
Pyodide's inside is private, so each version is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from pages import CASES_JS, TestPage
from serve import SITE

VERSIONS = ("314.0.0", "314.0.7")


@pytest.fixture(scope="module", params=VERSIONS)
def page(
    request: pytest.FixtureRequest, open_module_page: Callable[..., TestPage]
) -> Iterator[TestPage]:
    name = f"pyodide-{request.param}"
    if not (SITE / name).is_dir():
        pytest.fail(f"build/site has no {name}: `make suite NAME=pyodides` makes it")
    page = open_module_page(name)
    said = page.python("import pyodide\npyodide.__version__")
    assert said == request.param
    yield page
    assert page.watch.complaints() == []


def test_arrays_are_shared(page: TestPage) -> None:
    assert json.loads(
        str(
            page.python("""
import json
import numpy as np
import dlpack_web as dlw

array = np.arange(6, dtype=np.float32)
with dlw.from_dlpack(array) as tensor:
    view = tensor.js.data
    view[2] = 40.0
    same = view.byteOffset == array.ctypes.data
    again = float(np.from_dlpack(tensor)[2])
json.dumps([same, float(array[2]), again])
""")
        )
    ) == [True, 40, 40]


@pytest.mark.parametrize(
    "file",
    [
        "native/exchange/test_bridge.py",
        "native/exchange/test_lifetime.py",
        "browser/cases/py/gpu_waits.py",
        "browser/cases/py/gpu_cases.py",
        "browser/cases/py/gpu_interrupts.py",
    ],
)
def test_cases(file: str, page: TestPage) -> None:
    only = []
    newest = page.python("import pyodide\npyodide.__version__") == VERSIONS[-1]
    if newest and file == "browser/cases/py/gpu_interrupts.py":
        # sys.settrace(), by which the other cases interrupt, is of one thread state,
        # and from 314.0.5 on each task has one of its own.
        only = ["-k", "while_python_blocks"]
    page.pytest([f"tests/{file}", *only]).must_pass()
    if file == "browser/cases/py/gpu_interrupts.py":
        # A task that an interrupt ends raises it in the event loop as well, which logs it.
        page.watch.errors[:] = [e for e in page.watch.errors if e != "PythonError"]


def test_shared_memory_from_javascript(page: TestPage) -> None:
    page.cases(f"{CASES_JS}cpu_cases.mjs").must_pass()


def test_python_3_15_without_numpy(open_test_page: Callable[..., TestPage]) -> None:
    """An early Pyodide, for which there is no wheel of NumPy yet: the same wheel of ours loads,
    shares memory both ways, and Python waits for the GPU."""
    page = open_test_page("pyodide-315", numpy=False)
    told = page.python("""
import array
import sys
import dlpack_web as dlw

values = array.array("f", [1, 2, 3, 4])
with dlw.from_buffer(values) as tensor:
    tensor.js.data[1] = 40.0
    shares = [values[1], values.buffer_info()[0] == tensor.js.data.byteOffset]
    await dlw.webgpu.request_device()
    double = dlw.webgpu.ElementwiseKernel("f32 x", "f32 y", "y = x * 2")
    on_gpu = tensor.to_device("webgpu")
    doubled = double(on_gpu)
    with doubled.to_device("cpu") as read:  # Python waits
        waited = list(memoryview(read))
    on_gpu.release(), doubled.release()
str([sys.version_info[:2], "numpy" in sys.modules, shares, waited, dlw.live_tensors()])
""")
    assert told == str([(3, 15), False, [40.0, True], [2.0, 80.0, 6.0, 8.0], 0])
    assert page.watch.complaints() == []
