"""Libraries in Pyodide that want an array, with a Tensor.

NumPy, SciPy, pandas, scikit-learn, matplotlib and Pillow. `make test-lite` runs it, which
fetches the wheels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import TestPage

WHEELS = Path(__file__).resolve().parents[2] / "build" / "arrays"


def test_a_tensor_is_the_array_or_an_error(
    open_test_page: Callable[..., TestPage],
) -> None:
    wheels = [f"/arrays/{path.name}" for path in sorted(WHEELS.glob("*.whl"))]
    if not wheels:
        pytest.fail(f"{WHEELS} has no wheels: `make test-lite` fetches them")
    page = open_test_page()
    page.python(f"""
from pyodide_js import loadPackage

await loadPackage({wheels})
None
""")
    page.pytest(["tests/browser/array_libraries.py"]).must_pass()
    assert page.watch.complaints() == []
