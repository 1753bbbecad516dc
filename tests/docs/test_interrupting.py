"""Stop, while a block runs and before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect
from python_page import Python, opened
from serve import Server

# Both messages wait at the worker before it looks at one.
RUN_AND_INTERRUPT = """async (code) => {
  const { kernel } = globalThis.__python;
  const told = [];
  const done = kernel.run(code, (message) => told.push(message));
  kernel.interrupt();
  const outcome = await done;
  return [outcome, told.map(({ ename, text }) => ename ?? text ?? "").join("")];
}"""


INTERRUPTED = {
    "a loop": "while True: pass",
    "an upload": "while True: dlw.from_dlpack(a, device=d).release()",
    "an upload that converts": "while True: dlw.from_dlpack(w).to_device(d, dtype='float32')",
    "a write": "while True: x.write(a)",
    "a kernel": "while True: k(x, y, workgroups=1)",
    "a readback": "while True: await x.to_host()",
    "a readback that blocks": "while True: np.asarray(x)",
    "from_dlpack that blocks": "while True: np.from_dlpack(x, device='cpu')",
    "an image": "while True: (await dlw.webgpu.from_image(c)).release()",
    "waiting": "await asyncio.sleep(1000)",
}


@pytest.fixture(scope="module")
def python(browser: Browser, server: Server) -> Iterator[Python]:
    with opened(browser, server) as made:
        yield made


def test_interrupted_blocks_leave_nothing(python: Python) -> None:
    prepare = """
import asyncio, gc, warnings
import js
import numpy as np
import dlpack_web as dlw
d = await dlw.webgpu.request_device()
a, w = np.arange(1 << 18, dtype="f4"), np.arange(1 << 18, dtype="f8")[::2]
x, y = (dlw.from_dlpack(a, device=d) for _ in "xy")
k = dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  y[id.x] = 2 * x[id.x];
}''')
c = js.OffscreenCanvas.new(256, 256)
c.getContext("2d").fillRect(0, 0, 256, 256)
# An interrupt may come between a call and its await.
warnings.filterwarnings("ignore", "coroutine .* was never awaited")
"""
    held = """
gc.collect()
await asyncio.sleep(0.1)
(dlw.live_tensors(), dlw.webgpu.stats()[0]["buffers"])
"""
    works = """
k(x, y, workgroups=(1 << 12,))
bool((await y.to_host() == 2 * a).all() and (np.asarray(x) == a).all())
"""
    assert python.run(prepare) == ""
    before = python.run(held)
    assert before == "(2, 2)"
    for name, code in INTERRUPTED.items():
        python.begin(code)
        assert "KeyboardInterrupt" in python.stop(), name
        python.run("1 / 0")  # IPython keeps the last traceback, with all its frames
        assert python.run(held) == before, name
        assert python.run(works) == "True", name
    assert python.run("x.release(); y.release(); dlw.live_tensors()") == "0"
    assert python.watch.complaints() == []


# Python that says more than a page can show.
FLOODS = {
    "lines": "while True: print(1)",
    "long lines": "x = list(range(100_000))\nwhile True: print(x)",
    "no lines": "while True: print(1, end=' ')",
    "flushed": "while True: print(1, end='', flush=True)",
    "both streams": "while True: print(1); print(2, file=sys.stderr)",
    "progress": "while True: print('10 %', end='\\r')",
    "one text": "print('x\\n' * 100_000_000)",
    "displays": "while True: display(1)",
    "frames": "while True: display(HTML('<b>x</b>'))",
    "updates": "d = display(1, display_id=True)\nwhile True: d.update(2)",
    "clears": "while True: clear_output(wait=True); print(1)",
}
# Frames that the page shows, and how many elements there are then.
FRAMES = """(area) => new Promise((resolve) => {
  const wait = (left) =>
    left ? requestAnimationFrame(() => wait(left - 1)) : resolve(area.children.length);
  wait(20);
})"""


@pytest.mark.parametrize("code", FLOODS.values(), ids=FLOODS)
def test_a_flood_of_output_can_be_stopped(python: Python, code: str) -> None:
    python.start(f"import sys\nfrom IPython.display import *\n{code}")
    expect(python.outputs().locator("> *").first).to_be_attached()
    assert python.outputs().evaluate(FRAMES) <= 1000
    assert "KeyboardInterrupt" in python.stop()
    assert python.run("1 + 1") == "2"
    assert python.watch.complaints() == []


def test_an_interrupt_in_the_loops_own_code_ends_the_block(python: Python) -> None:
    struck = python.run("""
import asyncio, _thread
asyncio.get_running_loop().call_later(0.05, _thread.interrupt_main)
await asyncio.sleep(1000)
""")
    assert "KeyboardInterrupt" in struck
    assert python.run("1 + 1") == "2"
    assert python.watch.complaints() == []


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import asyncio; await asyncio.sleep(1000)", "print('ran')"],
)
def test_an_interrupt_right_behind_run_stops_the_block(
    python: Python, code: str
) -> None:
    assert python.run("1 + 1") == "2"
    told = python.page.evaluate(RUN_AND_INTERRUPT, code)
    assert told == ["error", "KeyboardInterrupt"]
    assert python.run("1 + 1") == "2"
    assert python.watch.complaints() == []


def test_an_interrupt_while_packages_load_stops_the_block(python: Python) -> None:
    held: list[Route] = []
    page = python.page
    page.route("**/packages/pillow-*.whl", lambda route: held.append(route))
    python.start("import PIL; print('ran')")
    while not held:
        page.wait_for_timeout(20)
    assert "KeyboardInterrupt" in python.stop()
    for route in held:
        route.continue_()
    page.unroute("**/packages/pillow-*.whl")
    assert python.run("import PIL; print('ran')") == "ran\n"
    assert python.watch.complaints() == []


def test_stop_while_python_loads(browser: Browser, server: Server) -> None:
    with opened(browser, server) as python:
        held: list[Route] = []
        python.page.route("**/packages/shell.zip", lambda route: held.append(route))
        with python.page.expect_request("**/packages/shell.zip"):
            python.start("print('ran')")
        assert python.stop() == ""
        assert python.block().locator(".state").inner_text() == "Stopped."
        for route in held:
            route.continue_()
        assert python.run("print('again')") == "again\n"
