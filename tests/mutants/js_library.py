"""The JavaScript library: its TypeScript is transpiled by esbuild, and tested by tests/js in
Node; what that leaves alive meets the cases of WebGPU in Chromium (js_chromium.py)."""

import json
import os
import queue
import re
import shutil
import subprocess
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from js_chromium import Chromium
from limits import TIMED_OUT, run
from model import (
    BUILD,
    EQUIVALENT,
    HERE,
    INVALID,
    KILLED,
    ROOT,
    SURVIVED,
    Mutant,
    Outcome,
    digest,
)

FOLDER = BUILD / "js"
SOURCE = ROOT / "js" / "src"
TESTS = ROOT / "tests" / "js"
# Node runs these, too.
CASES = [
    file
    for folder in ("runtimes", "browser/cases/js", "browser/libraries")
    for file in (ROOT / "tests" / folder).glob("*.mjs")
]
# The program itself: to start Node for each mutant, which starts it, takes longer than its work.
ESBUILD = next(
    iter((ROOT / "node_modules" / "@esbuild").glob("*/bin/esbuild")),
    ROOT / "node_modules" / ".bin" / "esbuild",
)
ROOMS = ("core", "exchange", "webgpu", "pyodide")
# As web/browser.py looks for it.
CHROMIUMS = (
    os.environ.get("CHROMIUM", "chromium"),
    "chromium",
    "chromium-browser",
    "google-chrome",
)
TRANSPILE = ["--format=esm", "--target=es2022", "--log-level=silent"]
# Not the names: esbuild gives them by how often letters occur, in comments and types, too.
SMALL = ["--minify-whitespace", "--minify-syntax"]
SLOWEST = 120.0  # seconds of a file of tests, without a mutant
QUICK = 10.0  # of those that run before Chromium's
# Chromium runs its cases one by one, those that run a line.
IN_CHROMIUM = "webgpu.test.mjs"


class JsLibrary:
    name = "js"
    rules = "universal.rules,c_like.rules,javascript.rules"

    def __init__(self, budget: float):
        self.budget = budget
        self.trees: queue.SimpleQueue[Path] = queue.SimpleQueue()

    def missing(self) -> str | None:
        if not shutil.which("node") or not ESBUILD.exists():
            return "Node.js with node_modules (`make js`)"
        if not any(map(shutil.which, CHROMIUMS)):
            return "Chromium (`make chromium`)"
        return None

    def files(self) -> list[Path]:
        return sorted(file for room in ROOMS for file in (SOURCE / room).glob("*.ts"))

    @cached_property
    def digest_of_tests(self) -> str:
        files = [*TESTS.rglob("*.mjs"), *CASES]
        return digest(*(file.read_bytes() for file in sorted(files)))

    def tests_digest(self) -> str:
        return self.digest_of_tests + self.chromium.tests_digest[:8]

    @cached_property
    def chromium(self) -> Chromium:
        files = sorted(SOURCE.rglob("*.ts"))
        return Chromium(FOLDER, digest(*(file.read_bytes() for file in files)))

    # --- which files of tests run which lines ---

    def kept(self, test: Path) -> Path:
        files = sorted([*SOURCE.rglob("*.ts"), *CASES])
        sources = digest(*(file.read_bytes() for file in files))
        name = f"{named(test)}-{digest(sources, test.read_bytes())}.json"
        return FOLDER / "map" / name

    @cached_property
    def maps(self) -> dict[Path, Path]:
        """Those of the tests as they are when it begins: somebody may be writing more."""
        return {test: self.kept(test) for test in node_tests()}

    def prepare(self) -> None:
        for tree in FOLDER.glob("tree-*"):  # of a run that was ended
            shutil.rmtree(tree) if tree.is_dir() else tree.unlink()
        (FOLDER / "map").mkdir(parents=True, exist_ok=True)
        stale = [test for test, kept in self.maps.items() if not kept.exists()]
        if stale:
            print(f"[mutants] which lines {len(stale)} files of tests run", flush=True)
        for test in stale:
            for old in (FOLDER / "map").glob(f"{named(test)}-*.json"):
                old.unlink()
            self.maps[test].write_text(json.dumps(self.record(test)))
        self.chromium.record(HERE / "js_lines.mjs")

    def record(self, test: Path) -> dict[str, object]:
        """{"seconds": …, "lines": {file: [line]}}; without lines where the test fails."""
        tree, found = self.tree(), FOLDER / "coverage"
        shutil.rmtree(found, ignore_errors=True)
        start = time.monotonic()
        env = {**os.environ, "NODE_V8_COVERAGE": str(found)}
        status = self.run_test(str(test.relative_to(TESTS)), tree, SLOWEST, env)
        seconds = time.monotonic() - start
        self.trees.put(tree)
        if status != 0:
            print(f"[mutants] not used, because it fails without a mutant: {test.name}")
            return {"seconds": 0, "lines": {}}
        command = ["node", HERE / "js_lines.mjs", tree / "js" / "dist", found]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return {"seconds": round(seconds, 2), "lines": json.loads(done.stdout)[0]}

    @cached_property
    def read(self) -> dict[str, tuple[float, dict[str, set[int]]]]:
        tests = {}
        for test, place in self.maps.items():
            kept = json.loads(place.read_text())
            lines = {name: set(them) for name, them in kept["lines"].items()}
            tests[str(test.relative_to(TESTS))] = (kept["seconds"], lines)
        return tests

    def tests_of(self, file: str, line: int) -> dict[str, float]:
        return {
            test: seconds
            for test, (seconds, lines) in self.read.items()
            if line in lines.get(file, ())
        }

    def mapped(self, file: str, line: int) -> int:
        """The line at which the map has that one: of a text of several lines, such as a shader, it
        has the first."""
        maps = [
            lines for _, lines in (*self.read.values(), *self.chromium.read.values())
        ]
        known = set().union(*(lines.get(file, ()) for lines in maps))
        return max((it for it in known if it <= line), default=line)

    # --- a mutant ---

    def tree(self) -> Path:
        """A copy of what tests/js needs, which one mutant at a time has."""
        try:
            return self.trees.get_nowait()
        except queue.Empty:
            tree = FOLDER / f"tree-{time.monotonic_ns()}"
        tree.mkdir(parents=True)
        for entry in ROOT.iterdir():
            if entry.name not in ("js", "tests", ".git"):
                os.symlink(entry, tree / entry.name)
        shutil.copytree(
            ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(ROOT / "js", tree / "js")
        files = [str(file) for file in SOURCE.rglob("*.ts")]
        out = [f"--outdir={tree / 'js' / 'dist'}", f"--outbase={SOURCE}", "--sourcemap"]
        subprocess.run([ESBUILD, *files, *TRANSPILE, *out], check=True)
        return tree

    def transpile(self, source: str, *options: str) -> str | None:
        command = [ESBUILD, "--loader=ts", *TRANSPILE, *options]
        done = subprocess.run(
            command, input=source, capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else None

    def reorders(self, text: str, source: str) -> bool:
        """Whether properties alone change their places."""
        both = [
            self.transpile(it, "--minify-whitespace") or "" for it in (text, source)
        ]
        return in_one_order(both[0]) == in_one_order(both[1])

    def adds_a_field(self, mutant: Mutant, source: str) -> bool:
        """Whether the statement that it adds is one of a class, where `break;` is a field."""
        after = re.sub(r"\b(break|continue);?\s*$", "throw 0;", mutant.after)
        text = replace(mutant, after=after).text_of(source)
        return after != mutant.after and self.transpile(text) is None

    def run_test(
        self, test: str, tree: Path, seconds: float, env: dict[str, str] | None = None
    ) -> int | str:
        bail = ["--import", HERE / "js_bail.mjs"]
        command = ["node", "--max-old-space-size=3000", *bail, f"tests/js/{test}"]
        log = tree.with_suffix(".txt")
        # Wasm reserves much of the address space.
        return run(command, seconds, env=env, cwd=tree, log=log, address_bytes=None)

    def try_out(self, mutant: Mutant, folder: Path) -> Outcome:
        source = (ROOT / mutant.file).read_text()
        text = mutant.text_of(source)
        small = self.transpile(text, *SMALL)
        if small is None or self.adds_a_field(mutant, source):
            return Outcome(INVALID)
        if small == self.transpile(source, *SMALL) or self.reorders(text, source):
            return Outcome(EQUIVALENT, "the same code without types and blanks")
        room = Path(mutant.file).relative_to("js/src")
        name = str(room.with_suffix(".js"))
        code = self.transpile(text) or ""
        line = self.mapped(str(room), mutant.line)
        tests = self.tests_of(str(room), line)
        pages = self.chromium.tests_of(str(room), line)
        if not tests and not pages:
            return Outcome(SURVIVED, "no test runs it")
        quick = {it: took for it, took in tests.items() if took <= QUICK}
        outcome = self.in_node(quick, name, code)
        if outcome.status == SURVIVED and pages:
            budget = self.budget
            outcome = self.chromium.try_out(pages, name, code, folder, budget)
        if outcome.status == SURVIVED:
            slow = {it: took for it, took in tests.items() if took > QUICK}
            outcome = self.in_node(slow, name, code)
        return outcome

    def in_node(self, tests: dict[str, float], name: str, code: str) -> Outcome:
        if not tests:
            return Outcome(SURVIVED)
        tree = self.tree()
        place = tree / "js" / "dist" / name
        before = place.read_text()
        try:
            place.write_text(code)
            return self.run_tests(tests, tree, Path(name).parent.name)
        finally:
            place.write_text(before)
            self.trees.put(tree)

    def run_tests(self, tests: dict[str, float], tree: Path, room: str) -> Outcome:
        spent = 0.0
        # Those of the same room first: all run what importing runs.
        order = sorted(
            tests, key=lambda it: (Path(it).parent.name != room, tests[it], it)
        )
        for test in order:
            if spent and spent + tests[test] > self.budget:
                break
            spent += tests[test]
            status = self.run_test(test, tree, 20 + 4 * tests[test])
            if status == TIMED_OUT:
                return Outcome(KILLED, f"{TIMED_OUT}: {test}")
            if status != 0:
                return Outcome(KILLED, test)
        return Outcome(SURVIVED)


def node_tests() -> list[Path]:
    return sorted(it for it in TESTS.rglob("*.test.mjs") if it.name != IN_CHROMIUM)


def named(test: Path) -> str:
    """Several folders may have a file of that name."""
    return f"{test.parent.name}-{test.name}"


def in_one_order(code: str) -> str:
    """With names in one order in braces that have nothing else: objects and patterns that name the
    same properties."""
    part = r"[\w$]+(?::!?(?:this\.#)?[\w$]+)?"

    def ordered(found: re.Match[str]) -> str:
        return "{" + ",".join(sorted(found[1].split(","))) + "}"

    return re.sub(rf"\{{({part}(?:,{part})+)\}}", ordered, code)
