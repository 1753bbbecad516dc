"""The tests of tests/browser that run the library's JavaScript in Chromium: the cases of WebGPU, from
JavaScript and from Python, in one page. A mutant is served in the place of its file."""

import json
import os
import shutil
from functools import cached_property
from pathlib import Path

from limits import TIMED_OUT, run
from model import KILLED, ROOT, SURVIVED, Outcome, digest
from pytest_runs import outcome_of

PYTHON = ROOT / "build" / "venv" / "bin" / "python"
BROWSER = ROOT / "tests" / "browser"
TESTS = "tests/browser/hosts/test_webgpu.py"
# What needs a page of its own, or onnxruntime-web, is slow; of two Pyodides one will do.
CHOSEN = "not pyodide-0.29 and not sessions and not memory_that_is_full"
START = 15.0  # seconds until Pyodide is there
Lines = dict[str, set[int]]


class Chromium:
    def __init__(self, folder: Path, sources: str):
        self.folder = folder
        self.key = digest(sources, self.tests_digest)

    @cached_property
    def tests_digest(self) -> str:
        folders = (BROWSER / "hosts", BROWSER / "cases")
        files = [file for it in folders for file in it.rglob("*") if file.is_file()]
        files = [it for it in files if it.suffix in (".py", ".mjs", ".html")]
        plugin = Path(__file__).with_name("pytest_chromium.py")
        return digest(*(file.read_bytes() for file in sorted([*files, plugin])))

    @property
    def kept(self) -> Path:
        return self.folder / "map" / f"chromium-{self.key}.json"

    def record(self, find_lines: Path) -> None:
        """Which lines each test runs, by the script `find_lines`."""
        if self.kept.exists():
            return
        for old in self.kept.parent.glob("chromium-*.json"):
            old.unlink()
        print("[mutants] which lines Chromium's tests run", flush=True)
        found = self.folder / "coverage"
        shutil.rmtree(found, ignore_errors=True)
        log = self.folder / "chromium.txt"
        status = self.pytest([TESTS], 1800, {"MUTANTS_COVERAGE": str(found)}, log)
        if status not in (0, 1) or not (found / "index.json").exists():
            raise SystemExit(f"Chromium's tests fail without a mutant: {log}")
        index = json.loads((found / "index.json").read_text())
        tests = {
            name: [seconds, lines_of(found / str(number), find_lines)]
            for name, (seconds, number) in index.items()
        }
        self.kept.write_text(json.dumps(tests))

    @cached_property
    def read(self) -> dict[str, tuple[float, Lines]]:
        return {
            name: (seconds, {file: set(them) for file, them in lines.items()})
            for name, (seconds, lines) in json.loads(self.kept.read_text()).items()
        }

    def tests_of(self, file: str, line: int) -> dict[str, float]:
        """With their seconds; of a line that setting up a page runs, all that run the file."""
        tests = {name: it for name, it in self.read.items() if name}
        found = {
            name: seconds
            for name, (seconds, lines) in tests.items()
            if line in lines.get(file, ())
        }
        if not found and line in self.read[""][1].get(file, ()):
            found = {
                n: seconds for n, (seconds, lines) in tests.items() if file in lines
            }
        return found

    def pytest(
        self, names: list[str], seconds: float, env: dict[str, str], log: Path
    ) -> int | str:
        arguments = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_chromium"]
        chosen = ["-k", CHOSEN] if names == [TESTS] else ["-x"]
        path = {"PYTHONPATH": str(Path(__file__).parent)}
        return run(
            [PYTHON, *arguments, "-q", "--tb=line", *chosen, *names],
            seconds,
            env=os.environ | path | env,
            cwd=ROOT,
            log=log,
            address_bytes=None,  # wasm reserves much of it
        )

    def try_out(
        self, tests: dict[str, float], file: str, text: str, folder: Path, budget: float
    ) -> Outcome:
        """`file`: its path in js/dist; `text`: what pages get in its place."""
        chosen: dict[str, float] = {}
        for name in sorted(tests, key=lambda it: (tests[it], it)):
            if chosen and sum(chosen.values()) + tests[name] > budget:
                break
            chosen[name] = tests[name]
        mutant = folder / "mutant.js"
        mutant.write_text(text)
        env = {"MUTANT_SERVED": file, "MUTANT_TEXT": str(mutant)}
        log = folder / "chromium.txt"
        limit = 3 * START + 4 * sum(chosen.values())
        status = self.pytest(list(chosen), limit, env, log)
        if status == TIMED_OUT:
            return Outcome(KILLED, f"{TIMED_OUT}: Chromium")
        return Outcome(SURVIVED) if status == 0 else outcome_of(status, log)


def lines_of(folder: Path, find_lines: Path) -> dict[str, list[int]]:
    log = folder / "lines.json"
    command = ["node", find_lines, folder, ROOT / "js" / "dist"]
    if run(command, 100, log=log, address_bytes=None) != 0:
        raise SystemExit(f"the lines that Chromium ran were not found: {log}")
    found: dict[str, list[int]] = json.loads(log.read_text())
    return found
