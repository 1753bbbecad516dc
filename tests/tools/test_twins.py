"""tests/fuzz/compare_twins.py: for a moment, and what counts as a difference."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))

import compare_twins

READ = {"is": {"metadata": {}, "found": [["a", "uint8", [1], "07"]]}}
UNREAD = {"is": {"metadata": {}, "found": [["a", "uint8", [1], None]]}}
OTHER = {"is": {"metadata": {}, "found": [["a", "uint8", [1], "08"]]}}
REFUSED = {"error": "data", "message": "it is damaged"}
CRASHED = {"error": "KeyError('x')", "message": "x"}


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


@pytest.mark.parametrize(
    ("subject", "ours", "theirs", "is_found"),
    [
        ("npy", READ, READ, False),
        ("npy", READ, REFUSED, True),
        ("npy", READ, OTHER, True),
        ("npy", REFUSED, {"error": "data", "message": "other words"}, False),
        ("npy", REFUSED, {"error": "type", "message": "it is damaged"}, True),
        ("npy", CRASHED, CRASHED, True),
        ("dtype", {"error": "type", "message": ""}, REFUSED, False),
        ("elementwise", REFUSED, {"error": "data", "message": "other words"}, True),
        ("npz", READ, UNREAD, True),
        ("damaged", READ, UNREAD, False),
        ("damaged", READ, REFUSED, False),
        ("damaged", READ, OTHER, True),
        ("damaged", REFUSED, CRASHED, True),
    ],
)
def test_what_counts_as_a_difference(subject, ours, theirs, is_found):
    found = compare_twins.difference((subject, "00"), theirs, ours)
    assert (found is not None) == is_found


def test_what_is_found_is_made_small_and_shown_again():
    class Node:
        """Refuses what has an x."""

        def send(self, inputs):
            ((_, self.given),) = inputs

        def results(self):
            error = {"error": "RangeError: oh", "message": ""}
            return [error if "x" in json.dumps(self.given) else {"is": []}]

    one = "plans", {"source": "many words around an x and some after it"}
    mine = compare_twins.SUBJECTS["plans"]
    compare_twins.SUBJECTS["plans"] = (1, mine[1], lambda given: [])
    try:
        _, given = compare_twins.shrunk(Node(), one)
    finally:
        compare_twins.SUBJECTS["plans"] = mine
    assert "x" in given["source"]
    assert len(given["source"]) <= 4


def test_a_seed_gives_the_same_inputs():
    first, again = (compare_twins.batch_of(random.Random(7), None) for _ in range(2))
    assert first == again
