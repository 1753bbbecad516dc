"""The calls of tests/interop/array_calls.py, for the libraries that Pyodide has."""

import gc
import sys
from pathlib import Path

import pytest
from gpu_world import live

sys.path.append(str(Path(__file__).parents[1] / "interop"))
import array_runs
from array_calls import CALLS, WAY

LIBRARIES = ["builtins", "numpy", "scipy", "pandas", "sklearn", "matplotlib", "PIL"]
TABLE = {library: CALLS[library] for library in LIBRARIES}
# The cells of from_records() are Tensors before pandas 3.1, and do no arithmetic.
TABLE["pandas"] = TABLE["pandas"] | {
    "pd.DataFrame.from_records(m) * 2": WAY,
    "pd.Series(t).where(mask, t)": "has no attribute '_hasna'",
}
# Warnings that libraries give of themselves, with ndarrays too.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _nothing_leaks():
    """A collection is slow with so many modules: only where something lives on."""
    before = live()
    yield
    if live() != before:
        gc.collect()
    assert live() == before, "a managed tensor leaked"


@pytest.mark.parametrize(("library", "expression", "expected"), array_runs.calls(TABLE))
def test_a_tensor_is_the_array_or_an_error(library, expression, expected):
    array_runs.run(array_runs.modules(library), expression, expected)
