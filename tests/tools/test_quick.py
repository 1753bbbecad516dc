"""`make quick` has tests for every source, and all that its map names is there."""

import subprocess
from fnmatch import fnmatchcase

import pytest
import quick

SOURCES = ("wasm", "py", "js/src", "web/docs", "tools")
PATHS = quick.git("ls-files", "--cached", "--others", "--exclude-standard")
OURS = [
    path
    for path in PATHS
    if path.startswith(tuple(f"{folder}/" for folder in SOURCES))
    and (quick.ROOT / path).is_file()
]
TESTS = [test for room in quick.ROOMS.values() for test in room.tests]


def test_every_source_has_a_room():
    assert len(OURS) > 150
    lost = [path for path in OURS if not quick.rooms_of(path)]
    assert lost == [], "ROOMS of tools/quick.py lacks them"


@pytest.mark.parametrize("name", quick.ROOMS)
def test_every_pattern_of_a_room_matches(name):
    room = quick.ROOMS[name]
    assert room.tests
    for pattern in room.sources:
        assert any(fnmatchcase(path, pattern) for path in PATHS), pattern


@pytest.mark.parametrize("test", TESTS)
def test_every_test_is_there_and_runs(test):
    found = list(quick.files([test]))
    assert found, "no such file"
    for each in found:
        runs = [suite for suite in quick.SUITES if each.startswith(suite.folders)]
        assert len(runs) == 1
        name, _, function = each.partition("::")
        text = (quick.ROOT / name).read_text("utf-8")
        function, _, case = function.partition("[")
        assert f"def {function}(" in text or not function
        parameter = case.rstrip("]").partition("-")[2]  # behind "pyodide-"
        given = text.partition(f"def {function}(")[0].rpartition("\n\n\n")[2]
        assert f'"{parameter}"' in given or not parameter


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a branch beside main."""
    monkeypatch.setattr(quick, "ROOT", tmp_path)

    def git(*arguments):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    git("checkout", "-qb", "work")
    return tmp_path, git


def test_changes_are_those_since_main(repository):
    folder, git = repository
    assert quick.changed() == []
    (folder / "a.py").write_text("2\n")
    git("commit", "-qam", "second")
    (folder / "b.py").write_text("2\n")
    (folder / "new.py").write_text("1\n")
    (folder / "c.py").unlink()
    assert quick.changed() == ["a.py", "b.py", "c.py", "new.py"]
    git("checkout", "-q", "-f", "main")
    assert quick.changed() == ["new.py"]


def test_a_change_chooses_its_room_and_tests():
    paths = ["wasm/pack.c", "tests/native/memory/test_pack.py", "CITATION.cff"]
    rooms, tests, left = quick.choose(paths)
    assert rooms == {"memory": ["wasm/pack.c"]}
    assert tests == ["tests/native/memory/test_pack.py"]
    assert left == ["CITATION.cff"]


def test_a_helper_chooses_the_tests_that_use_it():
    unused = f"tests/{'nobodys'}_helper.py"  # in parts, as this file would name it
    _, tests, left = quick.choose(["tests/native/packing.py", unused])
    assert "tests/native/memory/test_pack.py" in tests
    assert "tests/native/arrow/test_arrow.py" not in tests
    assert left == [unused]


def test_a_test_that_is_gone_does_not_run():
    assert quick.choose(["tests/native/test_gone.py"])[1] == []


def test_a_room_that_is_not_there_is_named():
    with pytest.raises(
        SystemExit, match=r"no room nonsense: there are memory, .*webgpu"
    ):
        quick.main(["nonsense"])


@pytest.mark.parametrize("outcome", [0, 1])
def test_what_was_chosen_and_how_it_ended_is_said(outcome, monkeypatch, capsys):
    runs = []
    monkeypatch.setattr(quick, "run", lambda *given: runs.append(given) or not outcome)
    assert quick.main(["arrow"]) == outcome
    [(suite, tests)] = runs
    assert suite.folders[0] == "tests/native/"
    assert "tests/native/arrow/test_arrow.py" in tests
    said = capsys.readouterr().out
    assert "arrow: asked for" in said
    assert ("passed in" in said) is not outcome
    assert "`make test`" in said
