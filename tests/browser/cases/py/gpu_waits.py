"""How blocking Python waits for JavaScript, inside the page."""

import asyncio

import numpy as np
import pyodide
import pytest
from pyodide.ffi import JsException, create_proxy, to_js

import dlpack_web as dlw
from dlpack_web import _core

VERSION = tuple(int(part) for part in pyodide.__version__.split(".")[:3])

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")


@pytest.mark.skipif(
    VERSION < (314, 0, 5),
    reason="this Pyodide hangs or aborts now and then when several tasks block at once, by its own "
    "run_sync() too (pyodide#6421)",
)
async def test_tasks_that_block_at_the_same_time_get_their_own_results():
    sizes = [1_000_000, 3, 400_000, 1, 0, 70_000]

    async def read(size, times):
        for turn in range(times):
            array = np.arange(size, dtype="f4") + size + turn
            with dlw.from_dlpack(array, device="webgpu") as tensor:
                await asyncio.sleep(0)
                assert np.array_equal(tensor.numpy(), array)

    await asyncio.gather(*(read(size, 5) for size in sizes))


def test_a_number_that_is_no_promises_is_refused():
    for number in (0, 123_456_789):
        with pytest.raises(
            JsException, match=f"waits for {number}, which is not a promise"
        ):
            _core._wait(number)


def test_below_frames_of_javascript_python_cannot_wait():
    seen = []

    def visit(*_):
        try:
            _core._wait(1)
        except RuntimeError as error:
            seen.append(str(error))

    visitor = create_proxy(visit)
    to_js([1]).forEach(visitor)
    visitor.destroy()
    assert seen == ["Python cannot wait here: that needs JSPI"]
