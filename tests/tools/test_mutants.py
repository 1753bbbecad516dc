"""`make mutants`: what it samples, how it ends what does not end, and how it goes on."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

MUTANTS = Path(__file__).resolve().parents[1] / "mutants"
sys.path.append(str(MUTANTS))

import js_library
import limits
import model
import py_package
import results
import run
import sampling
from model import INVALID, KILLED, SURVIVED, Mutant, Outcome

FILE = "tests/tools/test_mutants.py"
LINES = Path(__file__).read_text().splitlines()


def mutant(line, after="pass"):
    return Mutant("c", FILE, line, LINES[line - 1], after)


MANY = [mutant(line, f"pass  # {i}") for line in range(1, 20) for i in range(line)]


class Fake:
    """A part whose mutants are what `outcomes` says, by line."""

    name = "c"
    rules = ""

    def __init__(self, outcomes):
        self.outcomes = outcomes
        self.tried = []
        self.tests = "tests of now"

    def tests_digest(self):
        return self.tests

    def try_out(self, mutant, folder):
        assert folder.is_dir()
        assert not list(folder.iterdir())
        (folder / "left behind").write_text("")
        self.tried.append(mutant.line)
        return self.outcomes(mutant)


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "BUILD", tmp_path)
    monkeypatch.setattr(results, "BUILD", tmp_path)
    monkeypatch.setattr(
        run, "Results", lambda: results.Results(tmp_path / "results.jsonl")
    )
    return tmp_path


def test_a_seed_decides_the_order_alone():
    order = sampling.ordered(MANY, 7)
    assert order == sampling.ordered(list(reversed(MANY)), 7)
    assert order != sampling.ordered(MANY, 8)
    assert set(order) == set(MANY)


def test_a_line_with_many_mutants_weighs_no_more_than_another():
    first = [it.line for it in sampling.ordered(MANY, 1)[:19]]
    assert sorted(first) == list(range(1, 20))


def test_what_is_invalid_does_not_count(build):
    part = Fake(lambda it: Outcome(INVALID if it.line % 2 else KILLED))
    order = [mutant(line) for line in range(1, 20)]
    tried = run.try_all(part, order, 3, 1)
    assert [it.line for it, _ in tried] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_second_run_goes_on(build, workers):
    part = Fake(lambda it: Outcome(KILLED))
    order = [mutant(line) for line in range(1, 12)]
    run.try_all(part, order, 4, workers)
    before = len(part.tried)
    assert 4 <= before < 4 + workers
    tried = run.try_all(part, order, 10, workers)
    assert [it.line for it, _ in tried] == list(range(1, 11))
    assert len(part.tried) == len(set(part.tried))


def test_a_line_that_was_not_written_to_its_end_is_tried_again(build):
    part = Fake(lambda it: Outcome(KILLED))
    run.try_all(part, [mutant(1), mutant(2)], 2, 1)
    file = build / "results.jsonl"
    file.write_text(file.read_text()[:-20])
    run.try_all(part, [mutant(1), mutant(2)], 2, 1)
    assert part.tried == [1, 2, 2]


def test_survivors_are_tried_again_when_tests_change(build):
    part = Fake(lambda it: Outcome(SURVIVED if it.line == 2 else KILLED))
    order = [mutant(line) for line in (1, 2, 3)]
    run.try_all(part, order, 3, 1)
    run.try_all(part, order, 3, 1)
    part.tests = "other tests"
    run.try_all(part, order, 3, 1)
    assert part.tried == [1, 2, 3, 2]


def test_nothing_is_left_behind(build):
    run.try_all(Fake(lambda it: Outcome(KILLED)), [mutant(1)], 1, 1)
    assert not list((build / "runs").iterdir())
    assert Path(__file__).read_text().splitlines() == LINES


def test_a_mutant_is_of_the_line_that_it_names():
    assert mutant(1, "pass").text_of("\n".join(LINES)).splitlines()[1:] == LINES[1:]
    with pytest.raises(ValueError, match="is not"):
        mutant(1).text_of("another file\n")


def running(marker):
    """Processes with that in their command line."""
    found = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    )
    return [line for line in found.stdout.splitlines() if marker in line]


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path):
    marker = f"31{os.getpid()}7"
    script = f"sleep {marker} & sleep {marker}"
    ended = limits.run(["bash", "-c", script], 1, log=tmp_path / "log")
    assert ended == limits.TIMED_OUT
    assert not running(f"sleep {marker}")


def test_what_takes_all_memory_fails(tmp_path):
    code = "bytearray(1 << 40)"
    assert limits.run([sys.executable, "-c", code], 60, log=tmp_path / "log") == 1
    assert "MemoryError" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("to", ["open('full', 'wb')", "sys.stdout.buffer"])
def test_what_fills_the_disk_fails(tmp_path, monkeypatch, to):
    monkeypatch.setattr(limits, "FILE_BYTES", 1 << 20)
    code = f"import sys; file = {to}\nwhile True: file.write(bytes(1 << 16))"
    log = tmp_path / "log"
    assert limits.run([sys.executable, "-c", code], 60, log=log, cwd=tmp_path) != 0
    assert max(file.stat().st_size for file in tmp_path.iterdir()) <= 1 << 20


TESTS = """\
import time, pytest
def test_slow(): raise AssertionError("it runs after the others")
def test_hangs():
    while True: time.sleep(1)
def test_spins():
    while True: pass
def test_waits(): time.sleep(2)
def test_quick(): pass
def test_left_out(): raise AssertionError("it is not in the plan")
"""


@pytest.mark.parametrize(
    ("last", "status"),
    [("slow", 1), ("hangs", -signal.SIGALRM), ("spins", -signal.SIGPROF), ("waits", 0)],
)
def test_planned_tests_run_in_their_order_each_with_a_limit(tmp_path, last, status):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    plan = {"test_it.py::test_quick": 0, f"test_it.py::test_{last}": 0}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, "-m", "pytest", "-xv", "-p", "no:cacheprovider"]
    command += ["-p", "pytest_mutants", "test_it.py"]
    env = {**os.environ, "MUTANTS_PLAN": str(tmp_path / "plan.json")}
    env |= {"MUTANTS_SLOWER": "0.1", "PYTHONPATH": str(MUTANTS)}
    done = subprocess.run(
        command, check=False, cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout
    names = [
        line.split()[0]
        for line in done.stdout.splitlines()
        if line.startswith("test_it")
    ]
    assert names[0] == "test_it.py::test_quick"
    assert f"test_it.py::test_{last}" in names[1]


def test_an_interrupt_leaves_no_process(tmp_path):
    marker = f"32{os.getpid()}7"
    code = f"""
import signal, sys
from pathlib import Path
sys.path[:0] = [{str(MUTANTS)!r}]
import limits, model, results, run
run.BUILD = Path({str(tmp_path)!r})
run.Results = lambda: results.Results(run.BUILD / "results.jsonl")
class Part:
    name, rules = "c", ""
    def tests_digest(self): return ""
    def try_out(self, mutant, folder):
        print("begins\\n", end="", flush=True)
        limits.run(["sleep", "{marker}"], 600, log=folder / "log")
        return model.Outcome(model.KILLED)
signal.signal(signal.SIGINT, run.end)
mutants = [model.Mutant("c", {FILE!r}, 1, {LINES[0]!r}, str(i)) for i in range(9)]
try:
    run.try_all(Part(), mutants, 9, 2)
except (KeyboardInterrupt, limits.EndedError):
    sys.exit(130)
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            for _ in range(2):
                assert child.stdout.readline() == "begins\n"
            while not running(f"sleep {marker}"):
                time.sleep(0.01)
        finally:
            child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    assert not running(f"sleep {marker}")
    assert not (tmp_path / "results.jsonl").exists(), "how they ended says nothing"


def test_changed_lines_are_those_of_the_diff():
    diff = """\
--- a/wasm/pack.c
+++ b/wasm/pack.c
@@ -10,2 +10,3 @@ static int f(
+a
+b
+c
@@ -40 +41 @@
+d
@@ -50,2 +50,0 @@
"""
    assert sampling.lines_of_diff(diff) == {"wasm/pack.c": {10, 11, 12, 41}}


def test_the_report_has_survivors_and_a_score(build):
    tried = [(mutant(1), Outcome(KILLED)), (mutant(2, "2"), Outcome(SURVIVED))]
    text = results.report("c", "How.", tried)
    assert "## c: 50.0 % killed" in text
    assert f"{FILE}:2\n```diff\n-{LINES[1]}\n+2\n```" in text


@pytest.mark.parametrize("part", run.PARTS)
def test_known_mutants_are_of_lines_that_are_there(part):
    for it in sampling.known(part):
        assert it.before.strip() != it.after.strip()


def test_equivalent_mutants_are_of_lines_that_are_there():
    listed = tomllib.loads((MUTANTS / "equivalent.toml").read_text()).get("mutant", [])
    assert len(sampling.equivalent()) == len(listed)
    assert all(entry["why"] for entry in listed)


@pytest.mark.parametrize("before", ["return;", "no such line"])
def test_a_list_names_one_line(before):
    entry = {"file": "a.c", "before": before}
    with pytest.raises(SystemExit, match=r"a\.c has [02] times"):
        sampling.find_line(entry, lambda file: "f {\n  return;\n}\ng {\n  return;\n}")


def test_the_same_line_is_told_apart_by_its_function():
    entry = {"file": "a.c", "before": "return;", "under": "g "}
    source = "f {\n  return;\n}\ng {\n  return;\n}"
    assert sampling.find_line(entry, lambda file: source) == 5


@pytest.mark.parametrize(
    ("after", "same"),
    [
        ("def f(x):\n    'words'\n    return x + 1  # a note", True),
        ("def f(x):\n    'other words'\n    return (x +\n            1)", True),
        ("def f(x):\n    'words'\n    return x + 1\n    x += 1", True),
        ("def f(x):\n    'words'\n    return x + 1.0", False),
        ("def f(x, /):\n    'words'\n    return x + 1", False),
        ("def f(x):\n    'words'\n    return x - 1", False),
    ],
)
def test_python_that_does_the_same_does_not_count(after, same):
    before = "def f(x):\n    'words'\n    return x + 1"
    assert (py_package.meaning(before) == py_package.meaning(after)) == same


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (
            "def f():\n  'words'\nclass A: x = 1",
            "def f():\n  'words\\\n  more'\nclass A: x = 1",
            True,
        ),
        ("def f(x: int) -> int: return x", "def f(x: 'str') -> bool: return x", True),
        ("class A:\n  x: int = 1", "class A:\n  x: str = 1", True),
        ("class A:\n  x: int = 1", "class A:\n  x: int = 2", False),
        ("class A:\n  x: int = 1", "class A:\n  y: int = 1", False),
        ("class A(Protocol):\n  def f(self): ...", "class A(Protocol):\n  pass", True),
        ("class A(Base):\n  def f(self): ...", "class A(Base):\n  pass", False),
    ],
)
def test_what_only_mypy_looks_at_does_not_count(before, after, same):
    assert (py_package.meaning(before) == py_package.meaning(after)) == same


ECHO = """
import json, sys, time
for line in sys.stdin:
    if "hang" in line: time.sleep(1000)
    if "end" in line: break
    print(line.strip().upper(), flush=True)
"""


def test_what_is_asked_is_started_again_when_it_hangs_or_ends(tmp_path):
    asked = limits.Asked([sys.executable, "-c", ECHO], os.environ, tmp_path / "log")
    try:
        assert asked.ask("one", 60) == "ONE"
        first = asked.process.pid
        assert asked.ask("two", 60) == "TWO"
        assert asked.process.pid == first
        assert asked.ask("hang", 0.5) == limits.TIMED_OUT
        assert asked.ask("three", 60) == "THREE"
        assert asked.ask("end", 60) == ""
        assert asked.ask("four", 60) == "FOUR"
        last = asked.process.pid
    finally:
        asked.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(last, 0)


def test_parts_say_what_they_lack(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "gcc" in run.PARTS["c"](1).missing()
    assert "Node" in run.PARTS["js"](1).missing()


def test_mutants_of_javascript_need_a_browser(monkeypatch):
    there = {"node": "node"}
    monkeypatch.setattr(js_library.shutil, "which", there.get)
    part = run.PARTS["js"](1)
    if js_library.ESBUILD.exists():
        assert part.missing() == "Chromium (`make chromium`)"
    there["google-chrome"] = "google-chrome"
    assert "Chromium" not in (part.missing() or "")


def test_parts_are_those_of_the_model():
    for make in run.PARTS.values():
        part: model.Part = make(1)
        assert part.files()


@pytest.mark.parametrize(
    ("line", "users"), [(1, {4}), (2, {4, 5}), (3, set()), (4, set())]
)
def test_what_uses_a_table_of_a_python_module(line, users):
    """A public name may have users in other modules, too."""
    source = """\
_TABLE = {1: 2}
_OTHER: dict[int, int] = {}
PUBLIC = 3
def f(x): return _TABLE, _OTHER, PUBLIC
print(_OTHER, f(PUBLIC))
"""
    assert py_package.users(source, line) == users
