"""`make mutants PART=js`: which changes count, which tests meet a line, in Node and in Chromium."""

import json
import shutil
import sys
from pathlib import Path

import pytest

MUTANTS = Path(__file__).resolve().parents[1] / "mutants"
sys.path.append(str(MUTANTS))

import js_chromium
import js_library
import limits
import model
from js_chromium import Chromium
from limits import TIMED_OUT
from model import EQUIVALENT, INVALID, KILLED, SURVIVED, Outcome


@pytest.mark.skipif(not js_library.ESBUILD.exists(), reason="`make js` comes first")
@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("type A = number;", "/*type A = number;*/", EQUIVALENT),
        ("  x?: number;", "  x?: number;\n  break;", INVALID),
        ("  return x + 1;", "  return x +;", INVALID),
        ("  return x + 1;", "  return x + 1;\n  continue;", INVALID),
        ("  for (;;) { f(1);", "  for (;;) { f(1);\n  break;", SURVIVED),
        ("  return x + 1;", "  return x - 1;", SURVIVED),
        ("  return { r, x };", "  return { x, r };", EQUIVALENT),
    ],
)
def test_typescript_that_does_the_same_does_not_count(
    before, after, status, tmp_path, monkeypatch
):
    file = tmp_path / "js" / "src" / "a.ts"
    file.parent.mkdir(parents=True)
    file.write_text(
        "type A = number;\nclass B {\n  x?: number;\n}\nfunction f(x: A): A {\n"
        "  for (;;) { f(1);\n }\n  return x + 1;\n}\nfunction g(x: A) {\n"
        "  const r = { a: f(x) };\n  return { r, x };\n}\nexport { B, f, g };\n"
    )
    line = file.read_text().splitlines().index(before) + 1
    part = js_library.JsLibrary(1)
    monkeypatch.setattr(js_library, "ROOT", tmp_path)
    monkeypatch.setattr(part, "tests_of", lambda file, line: {})
    monkeypatch.setattr(part, "mapped", lambda file, line: line)
    monkeypatch.setattr(part.chromium, "tests_of", lambda file, line: {})
    mutant = model.Mutant("js", "js/src/a.ts", line, before, after)
    assert part.try_out(mutant, tmp_path).status == status


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("f({a,b:c})", "f({b:c,a})", True),
        ("const {a,b:c,d}=x;", "const {d,a,b:c}=x;", True),
        ("f({a:!0,b})", "f({b,a:!0})", True),
        ("f({a:this.#x,b})", "f({b,a:this.#x})", True),
        ("f({a:b,c:d})", "f({a:d,c:b})", False),
        ("f({a:g(),b:h()})", "f({b:h(),a:g()})", False),  # the calls' order may count
        ("f({...a,...b})", "f({...b,...a})", False),
        ("f(a,b)", "f(b,a)", False),
        ("[a,b]=x", "[b,a]=x", False),
    ],
)
def test_properties_in_another_order_do_not_count(before, after, same):
    same_code = js_library.in_one_order(before) == js_library.in_one_order(after)
    assert same_code == same


def test_lines_of_a_text_are_mapped_at_its_first():
    part = js_library.JsLibrary(1)
    node = {"x": (1, {"a.ts": {2, 3, 9}}), "y": (1, {"b.ts": {5}})}
    vars(part)["read"] = node
    vars(part.chromium)["read"] = {"z": (1, {"a.ts": {6}})}
    mapped = [part.mapped("a.ts", line) for line in range(1, 11)]
    assert mapped == [1, 2, 3, 3, 3, 6, 6, 6, 9, 9]


def test_tests_of_the_room_come_first(monkeypatch, tmp_path):
    part = js_library.JsLibrary(5)
    ran = []
    monkeypatch.setattr(part, "run_test", lambda test, *_: ran.append(test) or 0)
    tests = {"core/a": 1, "core/b": 2, "webgpu/c": 3, "webgpu/d": 1, "core/e": 9}
    assert part.run_tests(tests, tmp_path, "webgpu") == Outcome(SURVIVED)
    assert ran == ["webgpu/d", "webgpu/c", "core/a"]


BAILS = """
import { test } from "node:test";
test("passes", () => {});
test("fails", () => { throw new Error("first"); });
test("hangs", () => new Promise((resolve) => setTimeout(resolve, 600_000)));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not here")
def test_a_file_of_nodes_tests_ends_with_the_first_that_fails(tmp_path):
    (tmp_path / "a.mjs").write_text(BAILS)
    command = ["node", "--import", MUTANTS / "js_bail.mjs", tmp_path / "a.mjs"]
    assert limits.run(command, 300, log=tmp_path / "log", address_bytes=None) == 1


@pytest.fixture
def chromium(tmp_path):
    """Three tests in a page, of which one runs a line; setting the page up runs another."""
    found = Chromium(tmp_path, "")
    found.kept.parent.mkdir()
    tests = {
        "": [0, {"a.ts": [1, 2]}],
        "x": [3, {"a.ts": [2]}],
        "y": [1, {"a.ts": [3]}],
    }
    found.kept.write_text(json.dumps({**tests, "z": [2, {"b.ts": [1]}]}))
    return found


@pytest.mark.parametrize(
    ("line", "tests"), [(1, {"x": 3, "y": 1}), (2, {"x": 3}), (3, {"y": 1}), (4, {})]
)
def test_chromiums_tests_of_a_line(line, tests, chromium):
    assert chromium.tests_of("a.ts", line) == tests


Y, KILLED_BY_Y = ["y"], Outcome(KILLED, "y")


@pytest.mark.parametrize(
    ("budget", "asked", "outcome"),
    [
        (18, [(["b", "c"], ""), (["x", "y", "z"], "")], Outcome(SURVIVED)),
        (6, [(["b", "c"], ""), (["y", "z"], "y"), (Y, "")], KILLED_BY_Y),
        # It needs what another left in the page: the rest is tried.
        (
            18,
            [(["b", "c"], "b"), (["b"], "b"), (["c"], ""), (["x", "y", "z"], "")],
            None,
        ),
        (2, [(["b"], ""), (Y, "y"), (Y, "y")], None),
        (0, [(["b"], TIMED_OUT)], Outcome(KILLED, f"{TIMED_OUT}: Chromium")),
    ],
)
def test_a_mutant_in_chromium(budget, asked, outcome, chromium, tmp_path, monkeypatch):
    """Those that need no Python come first, and each kind has its share of the budget."""
    found = []

    def ask(file, text, tests, seconds):
        assert file == "a.js"
        assert text.name == "a.js" or text.read_text() == "mutated"
        assert seconds > 15  # until there is a page
        found.append([name.removeprefix(js_chromium.WITHOUT) for name in tests])
        name = asked[len(found) - 1][1]
        return js_chromium.WITHOUT + name if name in ("b", "c") else name

    monkeypatch.setattr(chromium, "ask", ask)
    tests = {"x": 3, "y": 1, "z": 2} | {js_chromium.WITHOUT + it: 1 for it in "cb"}
    monkeypatch.setattr(chromium, "read", dict.fromkeys(sorted(tests)))
    tried = chromium.try_out(tests, "a.js", "mutated", tmp_path, budget)
    assert tried == (outcome or Outcome(SURVIVED))
    assert found == [tests for tests, _ in asked]
