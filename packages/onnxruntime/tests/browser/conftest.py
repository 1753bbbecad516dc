"""Pages with Pyodide, dlpack-web and this package in them."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS.parents[2] / "tests" / "support"))
from in_browser import *

sys.path += [str(TESTS / "support"), str(TESTS / "foreign" / "runner")]


@pytest.fixture(scope="session")
def packages() -> list[str]:
    return ["/packages-js/onnxruntime/pyodide.js"]
