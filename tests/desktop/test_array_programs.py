"""Programs for arrays (tests/foreign/arrays) that run kernels, on the GPU.

Of the libraries that they use some are imported here; tests/interop/test_programs.py has all.
"""

import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "foreign" / "arrays"))
import kernels
import program_outcomes as outcomes
import program_runs as runs
import program_steps as steps

NAMES = [
    name
    for name in steps.NAMES
    if "kernels." in steps.text_of(name) and all(map(find_spec, steps.packages(name)))
]
# Warnings that libraries give of themselves, with ndarrays too.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_pictures_and_signals_are_among_them():
    assert {"ndimage_cells", "signal_peaks", "skimage_edges"} <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_takes_tensors_for_arrays(name, device, monkeypatch):
    monkeypatch.setattr(kernels, "DEVICE", device)
    outcome = runs.run(name)
    assert not outcome.wrong, "\n\n".join(outcome.wrong)
    outcomes.check("gpu", name, asdict(outcome))
