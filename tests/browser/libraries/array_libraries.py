"""The calls of tests/interop/array_calls.py, for the libraries that Pyodide has."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "interop"))
import array_runs
from array_calls import CALLS, WAY

LIBRARIES = ["builtins", "numpy", "scipy", "pandas", "sklearn", "matplotlib", "PIL"]
TABLE = {library: CALLS[library] for library in LIBRARIES}
# The cells of from_records() are Tensors before pandas 3.1, and do no arithmetic.
TABLE["pandas"] = TABLE["pandas"] | {
    "pd.DataFrame.from_records(m) * 2": WAY,
    "pd.Series(t).where(mask, t)": "has no attribute '_hasna'",
}
pytestmark = [
    # Warnings that libraries give of themselves, with ndarrays too.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("nothing_lives_on"),
]


@pytest.mark.parametrize(("library", "expression", "expected"), array_runs.calls(TABLE))
def test_a_tensor_is_the_array_or_an_error(library, expression, expected):
    array_runs.run(array_runs.modules(library), expression, expected)
