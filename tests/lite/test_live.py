"""What the notebook's Python does while it runs: pictures, sliders, interrupts, help, %pip."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator

import pytest
from notebook_page import Notebook, opened
from playwright.sync_api import Browser, Route, expect
from serve import Server

LAST = ".cell:last-child .outputs"
# The colour of a pixel of a canvas, and its size.
PIXEL = """(canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  return [...copy.getImageData(3, 3, 1, 1).data, canvas.width, canvas.height];
}"""
IMAGE = """
import asyncio
import numpy as np
import dlpack_web as dlw
d = await dlw.webgpu.request_device()
def grey(value):
    return dlw.from_dlpack(np.full((40, 60, 1), value, "f4"), device=d)
"""


@pytest.fixture(scope="module")
def notebook(browser: Browser, site: Server) -> Iterator[Notebook]:
    with opened(browser, site) as made:
        made.idle()
        yield made


def test_image_on_the_gpu_is_a_canvas(notebook: Notebook) -> None:
    before = notebook.run(IMAGE + "dlw.webgpu.stats()[0]['down']")
    notebook.run("one = grey(1.0)\none")
    canvas = notebook.page.locator(f"{LAST} canvas")
    assert canvas.evaluate(PIXEL) == [255, 255, 255, 255, 60, 40]
    assert "shape=(40, 60, 1)" in (canvas.get_attribute("aria-label") or "")
    assert notebook.run("dlw.webgpu.stats()[0]['down']") == before  # nothing came back
    _, written = notebook.saved()
    data = written["cells"][-2]["outputs"][0]["data"]
    assert sorted(data) == ["image/png", "text/plain"]
    assert "(2, 2)" in notebook.run("dlw.empty((2, 2), device=d)")  # no image
    assert notebook.watch.complaints() == []


def test_display_handle_draws_on_the_same_canvas(notebook: Notebook) -> None:
    notebook.run(IMAGE + "handle = display(grey(0.0), display_id=True)")
    canvas = notebook.page.locator(f"{LAST} canvas")
    canvas.evaluate("(it) => { it.dataset.mine = 1; }")
    notebook.start(
        "for i in range(21):\n    t = grey(i / 20); handle.update(t); t.release()"
    )
    assert notebook.finish() == ""
    canvas = notebook.page.locator("canvas[data-mine]")
    assert canvas.evaluate(PIXEL)[:4] == [255] * 4
    # What was drawn is in the picture, although the tensor is another one by now.
    notebook.run("t = grey(0.0); handle.update(t); t.write(np.ones((40, 60, 1), 'f4'))")
    assert canvas.evaluate(PIXEL)[:4] == [0, 0, 0, 255]
    notebook.run("text = display('a', display_id='text'); text.update('b')")
    assert notebook.page.locator(LAST).inner_text() == "'b'"
    assert notebook.watch.complaints() == []


def test_cells_that_are_cleared_keep_no_pictures(notebook: Notebook) -> None:
    said = notebook.run(
        IMAGE + "from IPython.display import clear_output\n"
        "for i in range(8): clear_output(wait=True); display(grey(i / 7))"
    )
    assert said == ""
    assert notebook.page.locator(f"{LAST} canvas").count() == 1
    assert notebook.watch.complaints() == []


def test_sliders(notebook: Notebook) -> None:
    notebook.run(
        "from dlw_page import interact, slider\n"
        "gain = slider(0, 10, value=4, label='gain')\ngain"
    )
    label = notebook.page.locator(f"{LAST} .slider")
    assert label.inner_text().split() == ["gain", "4"]
    label.locator("input").fill("7")
    assert label.inner_text().split() == ["gain", "7"]
    assert notebook.run("gain.value") == "7"
    notebook.run("interact(lambda x, n: x * n, x=(0.0, 2.0), n=(1, 5))")
    area = notebook.page.locator(LAST)
    area.locator("input").nth(0).fill("1.5")
    area.locator("input").nth(1).fill("3")
    notebook.page.wait_for_function(
        "(at) => document.querySelector(at).innerText.endsWith('4.5')", arg=LAST
    )
    # While a cell waits, sliders move, too.
    notebook.start(
        "import asyncio\nwhile gain.value != 2: await asyncio.sleep(0.01)\n'seen'"
    )
    label = notebook.page.locator(".slider", has_text="gain")
    label.locator("input").fill("2")
    assert notebook.finish() == "'seen'"
    said = notebook.run("slider(2, 1)")
    assert "the minimum must be less than the maximum" in said
    # What goes wrong after a move is said below the cell.
    notebook.run("slider(0, 3, on_change=lambda value: 1 / value)")
    notebook.page.locator(f"{LAST} input").fill("1")
    notebook.page.locator(f"{LAST} input").fill("0")
    notebook.page.wait_for_selector(f"{LAST} .error")
    assert "ZeroDivisionError" in notebook.page.locator(f"{LAST} .error").inner_text()
    assert notebook.watch.complaints() == []


@pytest.mark.parametrize(
    "body",
    [
        "plt.plot([0, k])",
        "plt.figure(); plt.plot([0, k]); plt.show()",
        "figure, axes = plt.subplots(); axes.plot([0, k]); return figure",
        "await asyncio.sleep(0); plt.plot([0, k])",
    ],
)
def test_figures_of_interact_are_replaced(notebook: Notebook, body: str) -> None:
    awaits = "await " if "await" in body else ""
    notebook.run(
        "import asyncio\nimport matplotlib.pyplot as plt\nfrom dlw_page import interact\n"
        f"{'async ' if awaits else ''}def draw(k):\n    {body}\n"
        f"{awaits}interact(draw, k=(0.0, 4.0))"
    )
    figures = notebook.page.locator(f"{LAST} img")
    assert figures.count() == 1
    first = figures.get_attribute("src")
    notebook.page.locator(f"{LAST} input").fill("3")
    notebook.page.wait_for_function(
        "([at, src]) => document.querySelector(at).src !== src",
        arg=[f"{LAST} img", first],
    )
    assert figures.count() == 1
    assert "None" not in notebook.page.locator(f"{LAST}").inner_text()
    assert notebook.run("len(plt.get_fignums())") == "0"


def test_outputs_of_interact_come_and_go(notebook: Notebook) -> None:
    notebook.run(
        "from dlw_page import interact\n"
        "def say(n):\n    for i in range(n): display(i)\n"
        "interact(say, n=(0, 4))"
    )
    for said in "012", "0", "0123", "":
        notebook.page.locator(f"{LAST} input").fill(str(len(said)))
        expect(notebook.page.locator(LAST)).to_have_text(
            re.compile(rf"n\s*{len(said)}\s*" + r"\s*".join(said) + r"\s*$")
        )


def test_sleep_is_interrupted(notebook: Notebook) -> None:
    notebook.start("import time; time.sleep(1000)")
    assert "KeyboardInterrupt" in notebook.interrupt()
    said = notebook.run(
        "t = time.monotonic(); time.sleep(0.2); time.monotonic() - t >= 0.2"
    )
    assert said == "True"
    assert "TypeError" in notebook.run("time.sleep('x')")


def test_long_call_is_said_to_be_one(notebook: Notebook) -> None:
    notebook.start(
        "len(sorted(range(10**9, 0, -1), key=None)) if False else sum(range(10**9))"
    )
    notebook.page.wait_for_timeout(300)
    notebook.page.click("#interrupt")
    expect(notebook.page.locator("#kernel")).to_contain_text("Restart ends it now")
    notebook.page.wait_for_selector("#problem:visible")
    assert "inside one long call" in notebook.problem()
    notebook.page.click("#problem button")
    assert notebook.page.locator("#problem").is_hidden()
    notebook.page.click("#restart")
    notebook.idle()
    assert notebook.run("6 * 7") == "42"


def test_quit_ends_python(notebook: Notebook) -> None:
    notebook.start("quit()")
    notebook.page.wait_for_selector("#kernel[data-state=dead]")
    assert "quit() has ended Python" in notebook.problem()
    notebook.page.click("#restart")
    notebook.page.wait_for_selector("#kernel[data-state=idle]")
    assert notebook.problem() == ""
    assert notebook.run("6 * 7") == "42"


def test_long_traceback_is_at_its_end(notebook: Notebook) -> None:
    notebook.run(
        "def f(n):\n    if n == 0: raise ValueError('\\n'.join(map(str, range(99))))\n    f(n - 1)\nf(9)"
    )
    error = notebook.page.locator(f"{LAST} .error")
    top, most = error.evaluate(
        "(it) => [it.scrollTop, it.scrollHeight - it.clientHeight]"
    )
    assert most > 0
    assert abs(top - most) <= 1


def test_shift_tab_helps(notebook: Notebook) -> None:
    page = notebook.page
    notebook.run("import dlpack_web as dlw")
    page.click("#add-code")
    page.keyboard.insert_text("if 1:\n    dlw.from_dlpack")
    page.keyboard.press("Shift+Tab")
    shown = page.locator(".cell:last-child .help")
    shown.wait_for()
    page.wait_for_function(
        "() => document.querySelector('.cell:last-child .help').textContent.includes('Signature')"
    )
    page.keyboard.press("Escape")
    assert shown.is_hidden()
    page.keyboard.insert_text("?")  # the editor has the keyboard still
    page.keyboard.press("Home")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    assert notebook.sources()[-1] == "if 1:\ndlw.from_dlpack?"


def wheel() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("farpackage.py", "value = 42\n")
        info = "farpackage-1.0.dist-info/"
        made.writestr(
            f"{info}METADATA", "Metadata-Version: 2.1\nName: farpackage\nVersion: 1.0\n"
        )
        made.writestr(
            f"{info}WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        made.writestr(f"{info}RECORD", "")
    return file.getvalue()


def test_pip_says_that_nothing_may_be_asked(notebook: Notebook) -> None:
    said = notebook.run("%pip install -q farpackage")
    told = r"farpackage would come from https://\S+, and this site allows no requests"
    assert re.search(told, said)
    assert "make serve OUTSIDE=1" in said
    assert "%pip install does not support -r here" in notebook.run(
        "%pip install -r x.txt"
    )
    notebook.watch.errors.clear()  # the refusals, as the browser tells them


def test_pip_installs_where_it_may(browser: Browser, open_site: Server) -> None:
    file = wheel()
    name = "farpackage-1.0-py3-none-any.whl"
    listed = {
        "meta": {"api-version": "1.0"},
        "name": "farpackage",
        "versions": ["1.0"],
        "files": [
            {
                "filename": name,
                "url": f"https://files.example.org/{name}",
                "hashes": {"sha256": hashlib.sha256(file).hexdigest()},
                "size": len(file),
            }
        ],
    }
    headers = {"Access-Control-Allow-Origin": "*"}

    def answer(route: Route) -> None:
        if route.request.url.endswith(".whl"):
            route.fulfill(body=file, headers=headers)
        else:
            kind = "application/vnd.pypi.simple.v1+json"
            route.fulfill(body=json.dumps(listed), content_type=kind, headers=headers)

    with opened(browser, open_site) as notebook:
        notebook.page.context.route(re.compile("^https:"), answer)
        notebook.idle()
        said = notebook.run(
            "%pip install farpackage\nimport farpackage; farpackage.value"
        )
        assert said == "42"
