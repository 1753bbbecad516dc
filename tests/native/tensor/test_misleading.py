"""Wrong lines that people write, and the words that the error must have; the JavaScript of
the same rows runs in tests/js/core/misleading.test.mjs. A row has the line in Python (`py`)
and in JavaScript (`js`), words of both messages (`say`) and of one (`py_say`), words that
they lack (`not`), the whole message (`is`), and the error's name in both (`error`, or one
for each).
Looks inside: rows name readers that the public names reach with a file or a GPU alone."""

import asyncio
import copy
import gc
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import run
from forge import Forged, Recorder

import dlpack_web as dlw
from dlpack_web import _core
from dlpack_web._files.headers import dtype_of_descr
from dlpack_web._formulas.formulas import formula

IN_PAGE = sys.platform == "emscripten"
if not IN_PAGE:
    from dlpack_web._backends.model.device.request import Request
    from dlpack_web._backends.model.kernels.kernels import Kernel
    from dlpack_web._backends.model.kernels.wgsl import help_for, parse_shader

ROWS = json.loads((Path(__file__).parents[2] / "misleading.json").read_text("utf-8"))
LIMITS = {"maxBufferSize": 2**31, "maxStorageBufferBindingSize": 2**31}


class DaskArray:
    """As far as it is asked: an array with `__await__`."""

    shape = (3,)

    def __await__(self): ...

    def __array__(self): ...


def request(**options):
    Request(options).limits(LIMITS)


def unbound(binding, source=""):
    """The workgroups for a kernel with that binding."""
    source = source or f"@group(0) @binding(0) {binding};"
    kernel = Kernel.__new__(Kernel)
    kernel.label, kernel.fault = "k", None
    entry = "@compute @workgroup_size(64) fn main() {}"
    kernel._shader = parse_shader(source + entry, "main")
    kernel._usual_groups([None])


def say(text):
    raise ValueError(text)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize(
    "row", [row for row in ROWS if "py" in row], ids=lambda row: row["py"]
)
def test_a_wrong_line_gets_an_answer(row):
    if IN_PAGE and row["py"].startswith(("help(", "request(", "size(", "unbound(")):
        pytest.skip("JavaScript reads shaders and options here")
    names = {
        "a": np.arange(3.0),
        "asyncio": asyncio,
        "copy": copy,
        "core": _core,
        "DaskArray": DaskArray,
        "dlw": dlw,
        "formula": lambda text: formula(text, "operation"),
        "help": lambda row, said="operation, line 1": say(help_for(row, said)),
        "kernel": dlw.webgpu.ElementwiseKernel("f32 x", "f32 y", "y = x"),
        "np": np,
        "npy": lambda descr: say(dtype_of_descr(descr)[1]),
        "raw": dlw.webgpu.Kernel("fn main() {}"),
        "Recorder": Recorder,
        "run": run,
        "request": request,
        "size": lambda text: say(
            ",".join(map(str, parse_shader(text, "main").workgroup))
        ),
        "unbound": unbound,
    }
    there = Forged(device_type=15, data=7, ndim=1, shape=(4,), strides=(1,))
    with (
        dlw.empty((2, 3)) as t,
        dlw.from_dlpack(there) as g,
        pytest.raises(Exception) as caught,  # noqa: PT011
    ):
        eval(row["py"], names | {"t": t, "g": g})
    kinds = np.atleast_1d(row.get("error", type(caught.value).__name__))
    assert type(caught.value).__name__ == kinds[0]
    assert str(caught.value) == row.get("is", str(caught.value))
    words = [*row.get("say", []), row.get("py_say", "")]
    assert [word for word in words if word not in str(caught.value)] == []
    assert "not" not in row or row["not"] not in str(caught.value)
    caught = None
    gc.collect()  # coroutines that were not awaited warn here
