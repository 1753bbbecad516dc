"""dlpack_web_tinygrad in Pyodide: the cases that the desktop, Deno and Node run, too, and
what only a page has."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import TestPage
from tinygrad_page import LOAD

SOURCE = Path(__file__).parents[4] / "build" / "sources" / "tinygrad"
FILES = ["cases", "kept", "tensors"]
if os.environ.get("WHOLE"):  # minutes; make suite NAME=desktop runs most of them always
    FILES += ["llm", "operators", "programs", "special", "tiny"]


def write(page: TestPage, name: str, text: str) -> None:
    """A module beside those that Python finds in the page."""
    page.python(f"""
import sys
from pathlib import Path

Path("/given").mkdir(exist_ok=True)
Path("/given", {name!r}).write_text({text!r})
sys.path.append("/given")
""")


@pytest.mark.parametrize("file", FILES)
def test_tinygrad(file: str, open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page()
    page.python(LOAD)
    if file == "tiny":
        write(page, "test_tiny.py", (SOURCE / "test" / "test_tiny.py").read_text())
    page.pytest([f"packages/tinygrad/tests/cases/tinygrad_{file}.py"]).must_pass()


def test_synchronous_python_is_told_to_await(
    open_test_page: Callable[..., TestPage],
) -> None:
    """Without JSPI below it Python cannot wait: neither for a device nor for elements."""
    page = open_test_page()
    page.python(LOAD)
    message = page.python_sync("""
import dlpack_web_tinygrad as dlwt

try:
    dlwt.install()
    message = "nothing was raised"
except BufferError as error:
    message = str(error)
message
""")
    assert "await dlpack_web.webgpu.request_device()" in str(message)
    page.python("""
import dlpack_web as dlw
await dlw.webgpu.request_device()
""")
    message = page.python_sync("""
dlwt.install()
from tinygrad import Tensor

t = Tensor([1.0, 2.0]) + 1
try:
    t.tolist()
    message = "nothing was raised"
except BufferError as error:
    message = str(error)
message
""")
    assert "await dlpack_web_tinygrad.to_host(t)" in str(message)
    assert page.python("(await dlwt.to_host(t)).tolist() == [2, 3]")


VISIT = """
import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

dlwt.install(await dlw.webgpu.request_device())
from dlpack_web_tinygrad import _cache, _device

known = len(_cache.programs)
from tinygrad import Tensor

assert ((Tensor([1.0, 2.0, 3.0]) * 3).sum() + 0.25).item() == 18.25
"""


def test_the_browser_keeps_kernels(open_test_page: Callable[..., TestPage]) -> None:
    """They are stored some time after the last one was made; a page that is loaded again has
    them, and one of another origin or context has not."""
    page = open_test_page()
    start = {
        "pyodideDir": "/pyodide/",
        "wheel": page.page.evaluate(
            "async () => '/wheel/' + (await (await fetch('/wheel/wheel.json')).json()).file"
        ),
        "notebook": False,
    }
    page.python(LOAD)
    known, made = page.python(VISIT + "[known, len(_cache.programs)]")
    assert (known, made > 0) == (0, True)
    page.python("""
import asyncio

while not await dlwt._device.place().backend.cached(_device._cache._folder):
    await asyncio.sleep(0.1)
""")
    for _ in range(2):
        page.page.reload()
        page.call("start", start)
        page.python(LOAD)
        assert page.python(VISIT + "[known, len(_cache.programs)]") == [made, made]
    page.python("""
from dlpack_web._backends import browser

browser._MOST = 3
for i in range(5):
    await browser.cache("folder", str(i), bytes([i]))
found = await browser.cached("folder")
assert found == {str(i): bytes([i]) for i in range(2, 5)}, found
assert await browser.cached(_device._cache._folder) == {}
""")


@pytest.mark.parametrize(
    "nothing", ["undefined", "{ open: () => Promise.reject(new Error('forbidden')) }"]
)
def test_where_nothing_can_be_kept(
    open_test_page: Callable[..., TestPage], nothing: str
) -> None:
    replaced = f"Object.defineProperty(globalThis, 'caches', {{ value: {nothing} }});"
    page = open_test_page(script=replaced)
    page.python(LOAD)
    page.python(VISIT)
    page.python("""
assert _device._cache._folder is None
await dlwt._device.place().backend.cache("folder", "name", b"data")
""")


def test_importing_dlpack_web_loads_nothing_of_it(
    open_test_page: Callable[..., TestPage],
) -> None:
    page = open_test_page()
    assert page.python("""
import sys
import dlpack_web
not [name for name in sys.modules if "tinygrad" in name]
""")
