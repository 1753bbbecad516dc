"""The tests of tests/browser that run the library's JavaScript in Chromium: the cases of WebGPU one
by one, from JavaScript without Python, and from Python. A mutant is served in the place of its file."""

import json
import os
import queue
import shutil
from functools import cached_property
from pathlib import Path

from limits import TIMED_OUT, Asked, run
from model import KILLED, ROOT, SURVIVED, Outcome, digest
from pytest_runs import within

PYTHON = ROOT / "build" / "venv" / "bin" / "python"
BROWSER = ROOT / "tests" / "browser"
CASES = "tests/browser/hosts/single_cases.py"
TESTS = "tests/browser/hosts/test_webgpu.py"
# Single cases are those of the files of test_webgpu.py. What needs onnxruntime-web, or memory that is
# full, is slow; of two Pyodides one will do.
CHOSEN = "not pyodide-0.29 and not test_gpu_from and not sessions and not memory_that_is_full"
WITHOUT, WITH = f"{CASES}::test_without_python[", f"{CASES}::test_with_python[pyodide-"
#: In this order: a page without Python is there soon.
KINDS = (WITHOUT, "")
START = 60.0  # seconds until Pyodide is there, beside other work
Lines = dict[str, set[int]]


class Chromium:
    def __init__(self, folder: Path, sources: str):
        self.folder = folder
        self.key = digest(sources, self.tests_digest)
        self.idle: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        self.alone: dict[str, bool] = {}  # whether it passes alone, without a mutant

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
        env = self.environment | {"MUTANTS_COVERAGE": str(found)}
        status = run(self.command, 3600, env=env, cwd=ROOT, log=log, address_bytes=None)
        if status not in (0, 1) or not (found / "index.json").exists():
            raise SystemExit(f"Chromium's tests fail without a mutant: {log}")
        index = json.loads((found / "index.json").read_text())
        tests = {
            name: it
            for name, it in index.items()
            if not name.startswith(WITH) or name.replace(WITH, WITHOUT) not in index
        }
        folders = [found / str(number) for _, number in tests.values()]
        lines = lines_of(folders, find_lines, self.folder / "lines.json")
        each = zip(tests.items(), lines, strict=True)
        kept = {name: [seconds, ran] for (name, (seconds, _)), ran in each}
        self.kept.write_text(json.dumps(kept))

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

    @property
    def command(self) -> list[str | Path]:
        arguments = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_chromium"]
        return [PYTHON, *arguments, "-q", "--tb=short", "-k", CHOSEN, CASES, TESTS]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(Path(__file__).parent)}

    def ask(self, file: str, text: Path, tests: list[str], seconds: float) -> str:
        """The test that fails, "" where none does, or TIMED_OUT."""
        try:
            asked = self.idle.get_nowait()
        except queue.Empty:
            env = self.environment | {"MUTANTS_ASKED": "1"}
            asked = Asked(self.command, env, self.folder / "asked.txt")
        request = json.dumps({"file": file, "text": str(text), "tests": tests})
        answer = asked.ask(request, seconds)
        self.idle.put(asked)
        if not answer:
            raise RuntimeError(f"Chromium's tests ended: {asked.log}")
        return answer if answer == TIMED_OUT else str(json.loads(answer))

    def try_out(
        self, tests: dict[str, float], file: str, text: str, folder: Path, budget: float
    ) -> Outcome:
        """`file`: its path in js/dist; `text`: what pages get in its place."""
        mutant = folder / "mutant.js"
        mutant.write_text(text)
        left = dict(tests)
        for kind in KINDS:
            some = {
                it: left.pop(it) for it in tests if it in left and it.startswith(kind)
            }
            chosen = within(some, budget / len(KINDS)) if some else {}
            # In the order in which they passed: one may need what another left in the page.
            names = [name for name in self.read if name in chosen]
            while names:
                limit = 3 * START + 4 * sum(chosen.values())
                failed = self.ask(file, mutant, names, limit)
                if failed == TIMED_OUT:
                    return Outcome(KILLED, f"{TIMED_OUT}: Chromium")
                if failed and self.is_reliable(failed, file, limit):
                    return Outcome(KILLED, failed)
                names = names[names.index(failed) + 1 :] if failed else []
        return Outcome(SURVIVED)

    def is_reliable(self, test: str, file: str, limit: float) -> bool:
        """Whether it passes alone, too, and so in any row, with the file as it is."""
        if test not in self.alone:
            original = ROOT / "js" / "dist" / file
            self.alone[test] = not self.ask(file, original, [test], limit)
        return self.alone[test]


def lines_of(folders: list[Path], find_lines: Path, log: Path) -> list[object]:
    """For each folder {file: [line]}."""
    command = ["node", find_lines, ROOT / "js" / "dist", *folders]
    if run(command, 600, log=log, address_bytes=None) != 0:
        raise SystemExit(f"the lines that Chromium ran were not found: {log}")
    found: list[object] = json.loads(log.read_text())
    return found
