"""Tensors exchanged with the real JavaScript libraries, on one device."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import is_firefox
from conftest import PYODIDES
from pages import CASES_JS, TestPage

CASES = "/tests/browser/libraries/"
CASES_FILE = Path(__file__).parent / "share_cases.mjs"


@pytest.fixture(scope="module")
def shared_page(open_module_page: Callable[..., TestPage]) -> TestPage:
    """One page, and so one device, for all libraries."""
    return open_module_page()


@pytest.mark.parametrize(
    "library", ["ort", "tfjs", "jax", "three", "litert", "arrow", "worker"]
)
def test_library(library: str, shared_page: TestPage) -> None:
    folder = CASES_JS if library in ("arrow", "worker") else CASES
    shared_page.cases(f"{folder}{library}_cases.mjs").must_pass()
    assert shared_page.watch.complaints() == []


@pytest.mark.parametrize(
    "build", ["ort.webgpu", "ort.jspi", "ort.all"], ids=lambda build: build[4:]
)
def test_faults_of_sessions(
    build: str, open_test_page: Callable[..., TestPage]
) -> None:
    """In a page of its own for each build: it has one device."""
    page = open_test_page()
    page.page.evaluate(f"globalThis.ORT_BUILD = '{build}.bundle.min.mjs'")
    page.cases(f"{CASES}session_faults.mjs").must_pass()


def test_faults_of_what_libraries_were_given(
    open_test_page: Callable[..., TestPage],
) -> None:
    """In a page of its own: for a minute their results are doubtful."""
    open_test_page(None).cases(f"{CASES}library_faults.mjs").must_pass()


def test_exchange_protocol(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page()
    page.cases(f"{CASES_JS}exchange_cases.mjs").must_pass()
    assert page.watch.complaints() == []


@pytest.mark.parametrize("pyodide", PYODIDES)
def test_libraries_from_python(
    pyodide: str, open_test_page: Callable[..., TestPage]
) -> None:
    page = open_test_page(pyodide)
    page.pytest(["tests/browser/libraries/adapter_cases.py"]).must_pass()
    # Libraries try eval and do without it, which Firefox tells, and some time later.
    told = "blocked a JavaScript eval" if is_firefox() else "\0"
    assert [each for each in page.watch.complaints() if told not in each] == []


def test_several_modules_hand_memory_on(
    open_test_page: Callable[..., TestPage],
) -> None:
    """DuckDB-wasm, OpenCV.js, a module in C, and Python."""
    page = open_test_page(
        name="notebook.eval.html"
    )  # OpenCV.js makes functions of text
    page.cases(f"{CASES}modules_cases.mjs").must_pass()
    assert page.watch.complaints() == []


def test_arrow_libraries_in_pyodide(open_test_page: Callable[..., TestPage]) -> None:
    """arro3 and nanoarrow; PyPI has wheels of them for the newest Pyodide alone."""
    page = open_test_page()
    page.python("""
import json
from pyodide.http import pyfetch
from pyodide_js import loadPackage

names = json.loads(await (await pyfetch("/wheels/wheels.json")).string())
for name in "arro3_core", "nanoarrow":
    await loadPackage(f"/wheels/{names[name]}")
""")
    page.pytest(["tests/browser/libraries/arrow_libraries.py"]).must_pass()
    assert page.watch.complaints() == []


def test_the_package_webgpu(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page()
    page.python("""
import json
from pyodide.http import pyfetch
from pyodide_js import loadPackage

names = json.loads(await (await pyfetch("/wheels/wheels.json")).string())
await loadPackage(f"/wheels/{names['webgpu']}")
""")
    page.pytest(["tests/browser/libraries/webgpu_package.py"]).must_pass()
    assert page.watch.complaints() == []


SHARING = re.findall(
    r"^export async function (\w+)", CASES_FILE.read_text(), re.MULTILINE
)


@pytest.mark.parametrize("case", SHARING)
def test_one_device_for_all(case: str, open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(None)
    page.cases(f"{CASES}share_cases.mjs", case).must_pass()
    assert page.watch.complaints() == []


def test_transformers(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(None)
    page.cases(f"{CASES}transformers_cases.mjs").must_pass()
    assert page.watch.complaints() == []


def test_several_kernels_on_one_page(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(None)
    page.cases(f"{CASES_JS}kernels_cases.mjs").must_pass()
    assert page.watch.complaints() == []
