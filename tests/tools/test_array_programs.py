"""Programs for arrays (tests/foreign/arrays): their table, their marks and the reasons."""

import sys
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "foreign" / "arrays"))
import program_outcomes as outcomes
import program_reasons as reasons
import program_runs as runs
import program_steps as steps
from foreign_results import Table, cell


def test_every_program_has_an_outcome_and_no_other():
    known = outcomes.TABLE.parsed()
    assert sorted(name for name, place in known if place == "native") == steps.NAMES
    assert {place for _, place in known} == {*outcomes.PLACES}
    assert outcomes.TABLE.rendered(known) == outcomes.TABLE.written()


def test_every_reason_is_needed():
    listed = "\n".join(
        line for lines in outcomes.TABLE.parsed().values() for line in lines
    )
    for reason in reasons.REASONS.values():
        assert cell(reason) in listed


@pytest.mark.parametrize("name", steps.NAMES)
def test_every_mark_is_behind_an_assignment(name):
    program = steps.steps(name)
    marked = [step for step in program if step.tensor is not None]
    assert len(marked) == steps.text_of(name).count("# a Tensor")
    assert marked
    assert sum(step.checked for step in program) > 9


LIBRARY = """
import numpy as np

def take(x, otherwise):
    return x if isinstance(x, np.ndarray) else otherwise

def add(x, out):
    if isinstance(out, np.ndarray):
        out += x

def refuse(x, words):
    if not isinstance(x, np.ndarray):
        raise TypeError(words)
    return x

def keep(x):
    return lambda: refuse(x, "use np.asarray(t)")
"""
PROGRAM = '''"""A program."""
import library
import numpy as np

x = np.array([1.0, np.nan])  # a Tensor
out = np.zeros(2)  # a Tensor
same = library.take(x, np.array([1.0, np.nan]))
elements = library.take(x, np.array([2.0, np.nan]))
dtype = library.take(x, np.array([1.0, np.nan]).view("int64"))
shape = library.take(x, np.array([[1.0, np.nan]]))
listed = [library.take(x, [1.0, np.nan])]
library.take(x, 3)
print(library.take(x, 0).shape if library.take(x, None) is not None else "none")
library.add(np.ones(2), out)
helps = library.refuse(x, "use np.asarray(t)")
mute = library.refuse(x, "no")
late = library.keep(x)
late()
np.zeros(3)
'''


def test_only_what_is_the_same_counts_as_such(tmp_path, monkeypatch):
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(steps, "PROGRAMS", tmp_path)
    known = {("program", "mute = library.refuse(x, 'no')"): "for a reason"}
    monkeypatch.setattr(runs, "REASONS", known)
    outcome = runs.run("program")
    wrong = [text.splitlines()[0].partition(" = ")[0] for text in outcome.wrong]
    assert wrong == [
        *("elements", "dtype", "shape", "listed", "library.take(x, 3)"),
        "print(library.take(x, 0).shape if library.take(x, None) is not None else 'none')",
        *("library.add(np.ones(2), out)", "late()"),
    ]
    words = "TypeError: use np.asarray(t)"
    helps = "helps = library.refuse(x, 'use np.asarray(t)')"
    assert outcome.refused == [(helps, words)]
    mute = ("mute = library.refuse(x, 'no')", "TypeError: no", "for a reason")
    assert outcome.different == [mute]
    assert outcome.same == 2  # `same` and `late`
    assert steps.packages("program") == ["library", "numpy"]


def test_what_is_seen_has_to_be_what_is_kept(tmp_path, monkeypatch):
    table = Table(tmp_path / "ARRAYS.md", "# Table", "Refused")
    monkeypatch.setattr(outcomes, "TABLE", table)
    monkeypatch.delenv("PROGRAMS", raising=False)
    name, words = steps.NAMES[0], ("f(t)", "use np.asarray(t)")
    seen = asdict(runs.Outcome(same=2, refused=[words]))
    with pytest.raises(AssertionError, match="WHAT=programs"):
        outcomes.check("page", name, seen)
    with monkeypatch.context() as context:
        context.setenv("PROGRAMS", "write")
        outcomes.check("page", name, seen)
    assert f"| {name} | page | 3 | 2 | 1 | 0 |" in table.written()
    assert f"| {name} | page | `f(t)` | use np.asarray(t) |" in table.written()
    outcomes.check("page", name, seen)
    for other in ({"same": 3}, {"refused": []}, {"wrong": ["f(t)"]}):
        with pytest.raises(AssertionError):
            outcomes.check("page", name, seen | other)
    with pytest.raises(AssertionError, match="differs"):
        outcomes.check("page", name, seen | {"wrong": ["f(t)"]})
