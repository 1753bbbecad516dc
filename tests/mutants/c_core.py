"""The C core: compiled for this machine's Python, tested by tests/native, plainly first and,
where nothing fails, under ASan and UBSan."""

import bisect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from functools import cached_property
from pathlib import Path

from covering import Covering, Suite
from limits import GIB
from model import (
    BUILD,
    EQUIVALENT,
    HERE,
    INVALID,
    ROOT,
    SURVIVED,
    Mutant,
    Outcome,
    digest,
)
from pytest_runs import Pool, Seconds, likeliest, run_tests, within

sys.path.insert(0, str(ROOT / "wasm" / "toolchain"))
from build_asan import SANITIZE

FOLDER = BUILD / "c"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
TESTS = ROOT / "tests" / "native"
FLAGS = {
    "plain": ["-O2"],
    "asan": ["-O1", *SANITIZE],
    "trace": ["-O0", "-g", "-fsanitize-coverage=trace-pc"],
}
DOCSTRINGS = "/test_docstrings.py::"
TESTS_ASAN_LEAVES = "million"  # as `make test-asan` does


class CCore:
    name = "c"
    rules = "universal.rules,c_like.rules,c.rules"

    def __init__(self, budget: float):
        self.budget = budget
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
        (extension,) = settings["tool"]["setuptools"]["ext-modules"]
        self.sources = [ROOT / name for name in extension["sources"]]
        self.flags = [f"-D{k}={v}" for k, v in extension["define-macros"]]
        self.flags += ["-std=c11", "-fvisibility=hidden", "-fPIC", "-w"]
        self.flags += [f"-I{ROOT / 'wasm'}", f"-I{sysconfig.get_path('include')}"]

    def missing(self) -> str | None:
        if not shutil.which("gcc"):
            return "gcc, which the C core's mutants are compiled with"
        if not PYTHON.exists():
            return "build/venv (`make native`)"
        return None

    def files(self) -> list[Path]:
        return self.sources

    @cached_property
    def digest_of_tests(self) -> str:
        return digest(*(file.read_bytes() for file in sorted(TESTS.rglob("*.[pc]*"))))

    def tests_digest(self) -> str:
        return self.digest_of_tests

    # --- builds ---

    @cached_property
    def sources_digest(self) -> str:
        files = sorted([*(ROOT / "wasm").glob("*.[ch]"), HERE / "trace.c"])
        return digest(json.dumps(FLAGS), *(file.read_bytes() for file in files))

    def compile(self, kind: str, source: Path, to: Path) -> bool:
        command = ["gcc", "-c", *self.flags, *FLAGS[kind], source, "-o", to]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        return done.returncode == 0

    def link(self, kind: str, package: Path, instead: Path | None = None) -> None:
        """The package in a folder; the object file `instead` takes the place of its namesake."""
        objects = sorted((FOLDER / kind).glob("*.o"))
        objects = [
            instead if instead and instead.name == it.name else it for it in objects
        ]
        lay_out(package)
        flags = [flag for flag in FLAGS[kind] if flag.startswith("-fsanitize=")]
        out = package / "dlpack_web" / "_core.abi3.so"
        subprocess.run(["gcc", "-shared", *flags, *objects, "-o", out], check=True)

    def prepare(self) -> None:
        for kind in FLAGS:
            done = FOLDER / kind / "done"
            if done.exists() and done.read_text() == self.sources_digest:
                continue
            print(f"[mutants] the {kind} build of the C core")
            shutil.rmtree(FOLDER / kind, ignore_errors=True)
            (FOLDER / kind).mkdir(parents=True)
            for source in self.sources:
                if not self.compile(kind, source, FOLDER / kind / f"{source.stem}.o"):
                    raise SystemExit(f"{source} does not compile without a mutant")
            if kind == "trace":
                trace = ["gcc", "-c", "-O2", "-fPIC", HERE / "trace.c"]
                subprocess.run([*trace, "-o", FOLDER / kind / "trace.o"], check=True)
            self.link(kind, FOLDER / f"{kind}-package" / kind)
            done.write_text(self.sources_digest)
        self.covering.record()

    # --- which tests run which lines ---

    @cached_property
    def covering(self) -> Covering:
        package = FOLDER / "trace-package" / "trace"
        suite = Suite(PYTHON, sorted(TESTS.rglob("test_*.py")))
        return Covering(
            FOLDER, [suite], self.sources_digest, package, {}, self.symbolize
        )

    def symbolize(self, addresses: set[int]) -> dict[int, str]:
        """ "file:line" of each block of the core."""
        listed = sorted(addresses)
        core = FOLDER / "trace-package" / "trace" / "dlpack_web" / "_core.abi3.so"
        done = subprocess.run(
            ["addr2line", "-e", core],
            input="".join(f"{address - 1:#x}\n" for address in listed),
            capture_output=True,
            text=True,
            check=True,
        )
        places = {}
        for address, line in zip(listed, done.stdout.splitlines(), strict=True):
            if place := re.search(r"(\w+\.c):(\d+)", line):
                places[address] = f"{place[1]}:{place[2]}"
        return places

    def tests_of(self, mutant: Mutant) -> tuple[dict[str, float], dict[str, float]]:
        """Tests that run the line's block, and the others that run its function: the line may
        be a label, or the end of an expression. Of a table or a macro, all that run the file."""
        first, last = around((ROOT / mutant.file).read_text(), mutant.line)

        def function(known: list[int]) -> list[int]:
            return [line for line in known if first <= line <= last]

        def block(known: list[int]) -> list[int]:
            starts = function(known)
            at = bisect.bisect_right(starts, mutant.line) - 1
            return starts[max(at, 0) :][:1]

        name = Path(mutant.file).name
        near = self.covering.tests_of(name, block)
        rest = self.covering.tests_of(name, function)
        if '"' in mutant.before:  # texts are read without running a line of C
            near = near | self.of_files(DOCSTRINGS)
        # They may run the file in another process.
        near = near | self.of_files(f"/test_{Path(name).stem}.py::")
        return near, {test: took for test, took in rest.items() if test not in near}

    def of_files(self, part: str) -> dict[str, float]:
        every = self.covering.read[0]
        return {test: took for test, took in every.items() if part in test}

    # --- a mutant ---

    def try_out(self, mutant: Mutant, folder: Path) -> Outcome:
        source = folder / Path(mutant.file).name
        source.write_text(mutant.text_of((ROOT / mutant.file).read_text()))
        new = folder / f"{source.stem}.o"
        if not self.compile("plain", source, new):
            return Outcome(INVALID)
        if new.read_bytes() == (FOLDER / "plain" / new.name).read_bytes():
            return Outcome(EQUIVALENT, "the same object file")
        near, rest = self.tests_of(mutant)
        if not near:
            return Outcome(SURVIVED, "no test runs it")
        tests = within(near, self.budget)
        first = within(likeliest(tests, self.covering.read[0]), 3)
        self.link("plain", folder / "plain", new)
        for some in (first, tests, within(rest, self.budget / 2)):
            outcome = self.run_build("plain", some, folder)
            if outcome.status != SURVIVED:
                return outcome
        # Sanitizers make tests about ten times slower.
        tests = {it: took for it, took in tests.items() if TESTS_ASAN_LEAVES not in it}
        self.compile("asan", source, new)
        self.link("asan", folder / "asan", new)
        return self.run_build("asan", within(tests, self.budget / 10), folder)

    @cached_property
    def pools(self) -> dict[str, Pool]:
        return {"plain": Pool(PYTHON, {}), "asan": Pool(PYTHON, asan_environment())}

    def run_build(self, kind: str, tests: Seconds, folder: Path) -> Outcome:
        if not tests:
            return Outcome(SURVIVED)
        sanitized = kind == "asan"
        return run_tests(
            tests,
            folder,
            self.pools[kind],
            folder / kind,
            slower=10 if sanitized else 1,
            address_bytes=None if sanitized else 12 * GIB,
        )


def asan_environment() -> dict[str, str]:
    """As in `make test-asan`. Leaks are not looked for: the tests count what lives."""

    def library(name: str) -> str:
        command = ["gcc", f"-print-file-name={name}"]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.strip()

    return {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:hard_rss_limit_mb=8000",
    }


def lay_out(package: Path) -> None:
    """The Python files of the package, linked."""
    to = package / "dlpack_web"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    from_ = ROOT / "py" / "dlpack_web"
    for file in from_.rglob("*"):
        if file.suffix not in (".so", ".pyc") and file.is_file():
            place = to / file.relative_to(from_)
            place.parent.mkdir(exist_ok=True)
            os.symlink(file, place)


def around(source: str, line: int) -> tuple[int, int]:
    """First and last line of the function, or other thing at the file's top level."""
    ends = [
        at for at, text in enumerate(source.splitlines(), 1) if text.startswith("}")
    ]
    at = bisect.bisect_left(ends, line)
    return (ends[at - 1] + 1 if at else 1), (ends[at] if at < len(ends) else 1 << 30)
