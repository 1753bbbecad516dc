"""The wire in pages: over WebGPU in JavaScript, and its tests of Python in Pyodide."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import TestPage

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(path.name for path in TESTS.glob("native/wire/test_*.py"))
LOAD = """
import json
from js import URL, fetch, location
from pyodide_js import loadPackage

names = json.loads(await (await fetch("/wheel/packages.json")).text())
await loadPackage(URL.new(f"/wheel/{names['dlpack-web-page']}", location.href).href)
"""
NO_WIDGET = """
try:
    import dlpack_web_page.widget
    said = "nothing"
except ImportError as error:
    said = str(error)
said
"""


def test_gpu_from_javascript(strict_page: TestPage) -> None:
    strict_page.cases("/packages/page/tests/cases/wire_cases.mjs").must_pass()
    assert strict_page.watch.complaints() == []


@pytest.mark.parametrize("name", FILES)
def test_native_file_in_pyodide(name: str, strict_page: TestPage) -> None:
    strict_page.python(LOAD)
    strict_page.pytest([f"packages/page/tests/native/wire/{name}"]).must_pass()
    assert strict_page.watch.complaints() == []


def test_the_widget_says_what_a_page_has_instead(strict_page: TestPage) -> None:
    strict_page.python(LOAD)
    assert "webgpu.request_device()" in str(strict_page.python(NO_WIDGET))
