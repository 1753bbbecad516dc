"""Programs for arrays (tests/foreign/arrays) with Tensors: the same, or refused in words."""

import sys
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "foreign" / "arrays"))
import program_outcomes as outcomes
import program_runs as runs
import program_steps as steps

# Warnings that libraries give of themselves, with ndarrays too.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", steps.NAMES)
def test_a_program_takes_tensors_for_arrays(name):
    for package in steps.packages(name):
        pytest.importorskip(package, reason=f"{package} is not installed")
    outcome = runs.run(name)
    assert not outcome.wrong, "\n\n".join(outcome.wrong)
    outcomes.check("native", name, asdict(outcome))
