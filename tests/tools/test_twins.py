"""tests/fuzz/compare_twins.py, for a moment."""

import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))

import compare_twins


def test_both_languages_agree():
    command = [
        sys.executable,
        FUZZ / "compare_twins.py",
        "--seed",
        "1",
        "--seconds",
        "5",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for subject in compare_twins.SUBJECTS:
        assert f"{subject} " in done.stdout
