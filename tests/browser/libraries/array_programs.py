"""Programs for arrays (tests/foreign/arrays) in Pyodide, as far as it has their libraries.

OUTCOMES has what became of them: test_array_libraries.py compares that with what is kept.
"""

import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "foreign" / "arrays"))
import kernels
import program_runs as runs
import program_steps as steps

NAMES = [
    name
    for name in steps.NAMES
    if all(find_spec(each) for each in steps.packages(name))
]
OUTCOMES = {}
pytestmark = [
    # Warnings that libraries give of themselves, with ndarrays too.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("nothing_lives_on"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_takes_tensors_for_arrays(name, device, monkeypatch):
    monkeypatch.setattr(kernels, "DEVICE", device)
    outcome = runs.run(name)
    assert not outcome.wrong, "\n\n".join(outcome.wrong)
    OUTCOMES[name] = asdict(outcome)
