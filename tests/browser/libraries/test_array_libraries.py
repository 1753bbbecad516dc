"""Libraries in Pyodide that want an array, with a Tensor: single calls, and whole programs.

NumPy, SciPy, pandas, scikit-learn, matplotlib, Pillow, xarray, nanoarrow and arro3.
`make suite NAME=lite` runs it, which fetches the wheels.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import TestPage

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "foreign" / "arrays"))
import program_outcomes as outcomes

WHEELS = ROOT / "build" / "arrays"
FROM_PYPI = ("arro3_core", "nanoarrow", "xarray")


@pytest.fixture(scope="module")
def page(open_module_page: Callable[..., TestPage]) -> TestPage:
    wheels = [f"/arrays/{path.name}" for path in sorted(WHEELS.glob("*.whl"))]
    if not wheels:
        pytest.fail(f"{WHEELS} has no wheels: `make suite NAME=lite` fetches them")
    names = json.loads((ROOT / "build" / "wheels" / "wheels.json").read_text())
    wheels += [f"/wheels/{names[name]}" for name in FROM_PYPI]
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


def test_a_program_takes_tensors_for_arrays(page: TestPage) -> None:
    page.pytest(["tests/browser/libraries/array_programs.py"]).must_pass()
    assert page.watch.complaints() == []
    found = page.python(
        "import array_programs, json; json.dumps(array_programs.OUTCOMES)"
    )
    seen = json.loads(str(found))
    for name, outcome in seen.items():
        outcomes.check("page", name, outcome)
    kept = [name for name, place in outcomes.TABLE.parsed() if place == "page"]
    assert sorted(seen) == sorted(kept)
