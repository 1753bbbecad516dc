"""dlpack_web.tinygrad in Pyodide: the cases that the desktop runs, too (tests/desktop/cases),
and what only a page has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pages import TestPage

LOAD = """
import json
from pyodide.http import pyfetch
from pyodide_js import loadPackage

names = json.loads(await (await pyfetch("/wheels/wheels.json")).string())
await loadPackage(f"/wheels/{names['tinygrad']}")
"""


@pytest.mark.parametrize("file", ["cases", "operators", "programs", "tensors"])
def test_tinygrad(file: str, open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page()
    page.python(LOAD)
    page.pytest([f"tests/browser/cases/tinygrad/tinygrad_{file}.py"]).must_pass()


def test_synchronous_python_is_told_to_await(
    open_test_page: Callable[..., TestPage],
) -> None:
    """Without JSPI below it Python cannot wait: neither for a device nor for elements."""
    page = open_test_page()
    page.python(LOAD)
    message = page.python_sync("""
from dlpack_web import tinygrad as dlwt

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
    assert "await dlpack_web.tinygrad.to_host(t)" in str(message)
    assert page.python("(await dlwt.to_host(t)).tolist() == [2, 3]")


def test_importing_dlpack_web_loads_nothing_of_it(
    open_test_page: Callable[..., TestPage],
) -> None:
    page = open_test_page()
    assert page.python("""
import sys
import dlpack_web
not [name for name in sys.modules if "tinygrad" in name]
""")
