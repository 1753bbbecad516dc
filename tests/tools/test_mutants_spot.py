"""`make mutants QUICK=1`: which commits it looks at, what it warns of, and what it fails for."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

MUTANTS = Path(__file__).resolve().parents[1] / "mutants"
sys.path.append(str(MUTANTS))

import py_package
import spot
from model import BUILD, ROOT, Mutant

FILE = "py/dlpack_web/_tensor/hints.py"
LINES = (ROOT / FILE).read_text().splitlines()
LINE = next(at for at, line in enumerate(LINES, 1) if '"requires_grad"' in line)
LOOKS_AT_IT = """\
import pytest, dlpack_web, numpy
def test_hint():
    with pytest.raises(AttributeError, match="has no gradient"):
        dlpack_web.from_dlpack(numpy.ones(1)).requires_grad
"""
LOOKS_ELSEWHERE = """\
import dlpack_web, numpy
def test_shape():
    assert dlpack_web.from_dlpack(numpy.ones(1)).shape == (1,)
"""


def mutant(after='    "requires_grad": "",'):
    return Mutant("py", FILE, LINE, LINES[LINE - 1], after)


@pytest.fixture
def repository(tmp_path):
    """A function that runs git there, as quick.git does."""

    def git(*arguments, check=False):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, check=check, capture_output=True, text=True
        )
        return done.stdout.splitlines() if done.returncode == 0 else []

    git("init", "-q", "-b", "main", check=True)
    return git


def commit(git, message):
    git("commit", "-q", "--allow-empty", "-m", message, check=True)
    return git("rev-parse", "HEAD")[0]


def test_a_branch_is_compared_with_where_it_left_main(repository):
    commit(repository, "first")
    left = commit(repository, "second")
    repository("switch", "-q", "-c", "branch", check=True)
    commit(repository, "third")
    commit(repository, "fourth")
    assert spot.base(repository) == left


def test_main_is_compared_with_its_last_commits(repository):
    every = [commit(repository, str(at)) for at in range(spot.COMMITS + 5)]
    assert spot.base(repository) == every[-spot.COMMITS - 1]


def test_of_main_the_commits_that_changed_the_package_count(repository, tmp_path):
    (tmp_path / "py" / "dlpack_web").mkdir(parents=True)
    file = tmp_path / "py" / "dlpack_web" / "a.py"
    every = []
    for text in range(3):
        file.write_text(f"{text}\n")
        repository("add", ".", check=True)
        every.append(commit(repository, f"a change {text}"))
    for at in range(spot.COMMITS + 5):
        commit(repository, f"another file {at}")
    assert spot.base(repository) == every[0]


def test_one_commit_has_no_base(repository):
    commit(repository, "the only one")
    assert spot.base(repository) is None


def test_without_git_there_is_no_base():
    assert spot.base(lambda *arguments: []) is None


def test_a_clone_of_one_commit_passes_and_says_what_it_skips(monkeypatch, capsys):
    monkeypatch.setattr(spot, "base", lambda: None)
    spot.main(1, 4)
    assert capsys.readouterr().out.startswith("[skip] mutants: no older commit is here")


@pytest.fixture
def sampled(tmp_path, monkeypatch, capsys):
    """Tries those mutants with one file of tests; gives what is printed."""
    monkeypatch.setattr(spot, "FOLDER", tmp_path / "spot")
    monkeypatch.setattr(spot, "base", lambda: "HEAD")
    BUILD.mkdir(parents=True, exist_ok=True)

    def run(tests, *mutants, count=4):
        file = tmp_path / "test_it.py"
        file.write_text(tests)
        monkeypatch.setattr(spot, "tests_of", lambda source: [str(file)])
        monkeypatch.setattr(spot, "chosen", lambda *_: mutants)
        spot.main(1, count)
        return capsys.readouterr().out

    return run


def test_what_a_test_notices_is_killed(sampled):
    said = sampled(LOOKS_AT_IT, mutant())
    assert f"[mutants] {FILE}:{LINE}: killed (" in said
    assert "test_it.py::test_hint)" in said
    assert "warning" not in said
    assert "[mutants] 1 killed, 0 survived, 0 undecided" in said


def test_a_survivor_is_a_warning_with_its_change(sampled):
    said = sampled(LOOKS_ELSEWHERE, mutant())
    assert (
        f"[mutants] warning: {FILE}:{LINE}: survived\n"
        f'  - {LINES[LINE - 1].strip()}\n  + "requires_grad": "",\n'
    ) in said
    assert "[mutants] 0 killed, 1 survived, 0 undecided" in said


def test_what_does_not_compile_or_does_the_same_does_not_count(sampled):
    same = mutant(LINES[LINE - 1] + "  # a note")
    said = sampled(
        LOOKS_AT_IT, mutant("    ("), same, mutant(), mutant('    "x": "",'), count=1
    )
    assert "[mutants] 1 killed, 0 survived" in said


def test_a_test_that_fails_without_a_mutant_is_an_error(sampled):
    with pytest.raises(spot.BrokenError, match=r"without a mutant, .*::test_it fails"):
        sampled("def test_it(): assert False", mutant())


def test_what_is_too_slow_is_undecided(sampled, monkeypatch):
    monkeypatch.setattr(spot, "EACH", 1.0)
    said = sampled("import time\ndef test_it(): time.sleep(60)", mutant())
    assert f"{FILE}:{LINE}: undecided (no test failed within 1 s)" in said
    assert "warning" not in said


@pytest.mark.parametrize(
    ("took", "told"),
    [(0.1, "killed (time limit)"), (2.0, "undecided (no test failed within 3 s)")],
)
def test_what_hangs_is_killed_where_the_tests_are_fast_without(
    sampled, monkeypatch, took, told
):
    monkeypatch.setattr(spot, "EACH", 3.0)
    # A busy machine may need seconds for what the tests do without a mutant.
    monkeypatch.setattr(spot.Spot, "without_a_mutant", lambda *_: took)
    hangs = mutant(LINES[LINE - 1] + "\n}\nwhile True: pass\n_ = {")
    assert f"{FILE}:{LINE}: {told}" in sampled(LOOKS_ELSEWHERE, hangs)


def test_a_change_that_is_listed_as_equivalent_is_not_tried(sampled, monkeypatch):
    listed = {(FILE, LINE, mutant().after.strip())}
    monkeypatch.setattr(spot.sampling, "equivalent", lambda: listed)
    said = sampled(LOOKS_AT_IT, mutant(), mutant('    "requires_grad": "x",'))
    assert "[mutants] 1 killed, 0 survived, 0 undecided" in said


@pytest.fixture
def generates(monkeypatch):
    """Two mutants of each of the first 50 lines of a file."""

    def generated(part, rules, file):
        name, lines = str(file.relative_to(ROOT)), file.read_text().splitlines()[:50]
        return [
            Mutant(part, name, at, line, line + after)
            for at, line in enumerate(lines, 1)
            for after in ("+ 1", "+ 2")
        ]

    monkeypatch.setattr(spot.sampling, "generated", generated)


def test_changed_lines_of_files_with_native_tests_are_changed(generates, capsys):
    lines = {FILE: {3, 4}, "py/dlpack_web/webgpu.py": {3}, "js/src/index.ts": {1}}
    found = spot.chosen(lines, 1, time.monotonic() + 60)
    assert sorted((it.file, it.line) for it in found) == [
        (FILE, 3),
        (FILE, 3),
        (FILE, 4),
        (FILE, 4),
    ]
    assert capsys.readouterr().out == (
        "[mutants] changed files that other suites test, left out: 1\n"
    )


def test_where_time_is_short_one_file_is_left(generates, capsys):
    files = {FILE, "py/dlpack_web/_tensor/show.py", "py/dlpack_web/_tensor/facts.py"}
    found = spot.chosen({it: {3} for it in files}, 1, time.monotonic() - 1)
    assert len({it.file for it in found}) == 1
    assert capsys.readouterr().out == (
        "[mutants] changed files that there is no time for, left out: 2\n"
    )


def test_it_ends_when_its_time_is_over(sampled, monkeypatch):
    monkeypatch.setattr(spot, "SECONDS", 0.0)
    begun = time.monotonic()
    assert "[mutants] no mutant was tried of" in sampled(LOOKS_AT_IT, mutant())
    assert time.monotonic() - begun < 10


def test_sources_whose_tests_need_a_browser_are_left_out():
    assert spot.tests_of("py/dlpack_web/webgpu.py") == []
    assert spot.tests_of("py/dlpack_web/onnxruntime/_session.py") == []
    assert "tests/native/files/test_files.py" in spot.tests_of(
        "py/dlpack_web/_files/open.py"
    )
    assert (
        py_package.PACKAGE / "onnxruntime" / "_session.py"
        not in py_package.tested_here()
    )
