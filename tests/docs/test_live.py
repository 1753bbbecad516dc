"""What the Python of a page does while it runs: pictures, waiting, %pip."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect
from python_page import Python, opened
from serve import Server

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
def python(browser: Browser, server: Server) -> Iterator[Python]:
    with opened(browser, server) as made:
        yield made


def test_image_on_the_gpu_is_a_canvas(python: Python) -> None:
    before = python.run(IMAGE + "dlw.webgpu.stats()[0]['down']")
    python.run("one = grey(1.0)\none")
    canvas = python.outputs().locator("canvas")
    assert canvas.evaluate(PIXEL) == [255, 255, 255, 255, 60, 40]
    assert "shape=(40, 60, 1)" in (canvas.get_attribute("aria-label") or "")
    assert python.run("dlw.webgpu.stats()[0]['down']") == before  # nothing came back
    assert "(2, 2)" in python.run("dlw.empty((2, 2), device=d)")  # no image
    assert python.watch.complaints() == []


def test_display_handle_draws_on_the_same_canvas(python: Python) -> None:
    python.run(IMAGE + "handle = display(grey(0.0), display_id=True)")
    canvas = python.outputs().locator("canvas")
    canvas.evaluate("(it) => { it.dataset.mine = 1; }")
    many = "for i in range(21):\n    t = grey(i / 20); handle.update(t); t.release()"
    assert python.run(many, 1) == ""
    # The other block shows it when the page can.
    colour = f"`${{({PIXEL})(document.querySelector('[data-mine]')).slice(0, 4)}}`"
    python.page.wait_for_function(f"{colour} === '255,255,255,255'")
    # What was drawn is in the picture, although the tensor is another one by now.
    last = "t = grey(0.0); handle.update(t); t.write(np.ones((40, 60, 1), 'f4'))"
    assert python.run(last, 1) == ""
    python.page.wait_for_function(f"{colour} === '0,0,0,255'")
    python.run("text = display('a', display_id='text'); text.update('b')")
    assert python.outputs().inner_text() == "'b'"
    assert python.watch.complaints() == []


def test_output_goes_on_after_much_output_and_a_picture(python: Python) -> None:
    python.run("for _ in range(9): print('-' * 40_000)", 0)
    picture = "import time; display(grey(0.5)); time.sleep(0.5); 'after'"
    assert "after" in python.run(IMAGE + picture)
    assert python.watch.complaints() == []


def test_blocks_that_are_cleared_keep_no_pictures(python: Python) -> None:
    said = python.run(
        IMAGE + "from IPython.display import clear_output\n"
        "for i in range(8): clear_output(wait=True); display(grey(i / 7))"
    )
    assert said == ""
    assert python.outputs().locator("canvas").count() == 1
    assert python.watch.complaints() == []


def test_sleep_is_interrupted(python: Python) -> None:
    python.begin("import time; time.sleep(1000)")
    assert "KeyboardInterrupt" in python.stop()
    said = python.run(
        "t = time.monotonic(); time.sleep(0.2); time.monotonic() - t >= 0.2"
    )
    assert said == "True"
    assert "TypeError" in python.run("time.sleep('x')")


def test_long_call_is_said_to_go_on(python: Python) -> None:
    python.begin("sum(range(10**9))")
    python.block().get_by_role("button", name="Stop block 1").click()
    expect(python.page.locator(".python-state")).to_contain_text("Restart ends it now")
    python.restart()
    assert python.block().locator(".state").inner_text() == "Stopped."
    assert python.run("6 * 7") == "42"


def test_quit_ends_python(python: Python) -> None:
    python.start("quit()")
    python.page.wait_for_selector(".python-bar[data-state=dead]")
    assert "quit() has ended Python" in python.bar()
    python.restart()
    assert python.run("6 * 7") == "42"


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


def test_pip_says_that_nothing_may_be_asked(python: Python) -> None:
    said = python.run("%pip install -q farpackage")
    told = r"farpackage would come from https://\S+, and this site allows no requests"
    assert re.search(told, said)
    assert "make serve OUTSIDE=1" in said
    assert "%pip install does not support -r here" in python.run(
        "%pip install -r x.txt"
    )
    python.watch.errors.clear()  # the refusals, as the browser tells them


def test_pip_installs_where_it_may(browser: Browser, open_server: Server) -> None:
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

    with opened(browser, open_server) as python:
        python.page.context.route(re.compile("^https:"), answer)
        said = python.run(
            "%pip install farpackage\nimport farpackage; farpackage.value"
        )
        assert said == "42"
