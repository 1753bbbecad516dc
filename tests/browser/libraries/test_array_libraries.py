"""Libraries in Pyodide that want an array, with a Tensor: NumPy, SciPy, pandas, scikit-learn, matplotlib, Pillow.

`make suite NAME=lite` runs it, which fetches the wheels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import TestPage

ROOT = Path(__file__).resolve().parents[3]
WHEELS = ROOT / "build" / "arrays"


@pytest.fixture(scope="module")
def page(open_module_page: Callable[..., TestPage]) -> TestPage:
    wheels = [f"/arrays/{path.name}" for path in sorted(WHEELS.glob("*.whl"))]
    if not wheels:
        pytest.fail(f"{WHEELS} has no wheels: `make suite NAME=lite` fetches them")
    page = open_module_page()
    page.python(f"""
from pyodide_js import loadPackage

await loadPackage({wheels})
None
""")
    return page


def test_a_tensor_is_the_array_or_an_error(page: TestPage) -> None:
    page.pytest(["tests/browser/libraries/array_libraries.py"]).must_pass()
    assert page.watch.complaints() == []
