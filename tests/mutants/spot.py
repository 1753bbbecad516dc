#!/usr/bin/env python3
"""spot.py: a few mutants of the lines that the last commits changed, in under a minute.

Which tests run a line is not recorded: each mutant meets those native tests that the map of
tools/quick.py has for its file. What survives may be noticed by others: it is a warning. Only a
tool that does not work fails: tests that fail without a mutant, or an error of its own.
"""

import argparse
import contextlib
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable

import sampling
from limits import GIB, TIMED_OUT, EndedError, end_all
from model import BUILD, KILLED, ROOT, SURVIVED, Mutant
from py_package import (
    NATIVE,
    PACKAGE,
    PYTHONS,
    PyPackage,
    inside,
    lay_out,
    meaning,
    tested_here,
)
from pytest_runs import Pool, environment, options, outcome_of

sys.path.append(str(ROOT / "tools"))
import quick

COMMITS = 10  # that changed the package, where no branch says what changed
SECONDS, GENERATING, EACH = 60.0, 20.0, 15.0
UNDECIDED = "undecided"
FOLDER = BUILD / "spot"
Verdict = tuple[str, str]  # a status, and the test or the reason


class BrokenError(Exception):
    """What a mutant would show is not known, because the tool or a test does not work."""


def base(git: Callable[..., list[str]] = quick.git) -> str | None:
    """The commit that the lines changed since: where the branch left main, or the last commits
    that changed the package. None where the clone has no older one."""
    head = git("rev-parse", "HEAD")
    for branch in ("main", "origin/main"):
        found = git("merge-base", "HEAD", branch)
        if found and found != head:
            return found[0]
    last = ["rev-list", "--first-parent", f"--max-count={COMMITS + 1}", "HEAD"]
    line = git(*last, "--", "py/dlpack_web")
    if len(line) < 2:
        line = git(*last)
    return line[-1] if len(line) > 1 else None


def tests_of(file: str) -> list[str]:
    """The tests of the rooms of a source; none where some are not native: their lines would
    survive."""
    tests = [test for room in quick.rooms_of(file) for test in quick.ROOMS[room].tests]
    if not all(it.startswith("tests/native/") for it in tests):
        return []
    return list(dict.fromkeys(quick.files(tests)))


def is_worth_it(mutant: Mutant, listed: set[tuple[str, int, str]]) -> bool:
    """Whether it compiles, and is not known to do the same."""
    source = (ROOT / mutant.file).read_text()
    try:
        same = meaning(mutant.text_of(source)) == meaning(source)
    except (SyntaxError, ValueError):
        return False
    after = sampling.without_indents(mutant.after)
    return not same and (mutant.file, mutant.line, after) not in listed


def chosen(lines: sampling.Lines, seed: int, until: float) -> list[Mutant]:
    """The mutants of those lines, in their order; of as many files as the time allows."""
    names = {str(it.relative_to(ROOT)): it for it in PACKAGE.rglob("*.py")}
    changed, here = sorted(lines.keys() & names.keys()), tested_here()
    files = [names[it] for it in changed if names[it] in here and tests_of(it)]
    if others := len(changed) - len(files):
        print(f"[mutants] changed files that other suites test, left out: {others}")
    random.Random(seed).shuffle(files)
    mutants: list[Mutant] = []
    for at, file in enumerate(files):
        if mutants and time.monotonic() > until:
            late = len(files) - at
            print(
                f"[mutants] changed files that there is no time for, left out: {late}"
            )
            break
        found = sampling.generated("py", PyPackage.rules, file)
        mutants += [it for it in found if it.line in lines[it.file]]
    return sampling.ordered(mutants, seed)


class Spot:
    def __init__(self, pool: Pool, until: float):
        self.pool, self.until = pool, until
        self.plainly: dict[tuple[str, ...], float | None] = {}

    def run(self, tests: list[str], instead: dict[str, str]) -> Verdict:
        """What the tests say of the package with those files in it."""
        shutil.rmtree(FOLDER, ignore_errors=True)
        lay_out(FOLDER / "package", instead)
        log = FOLDER / "log.txt"
        with self.pool.one() as warm:
            status = warm.run(
                options(tests, FOLDER),
                min(EACH, self.left()),
                path=FOLDER / "package",
                env=environment(FOLDER / "package", FOLDER),
                log=log,
                address_bytes=64 * GIB,
            )
        outcome = outcome_of(status, log)
        return outcome.status, outcome.by

    def left(self) -> float:
        return max(self.until - time.monotonic(), 0.1)

    def without_a_mutant(self, tests: list[str]) -> float | None:
        """The seconds that the tests take; None where they take too many."""
        key = tuple(tests)
        if key not in self.plainly:
            start = time.monotonic()
            status, by = self.run(tests, {})
            if status == KILLED and by != TIMED_OUT:
                raise BrokenError(f"without a mutant, {by} fails")
            took = time.monotonic() - start
            self.plainly[key] = None if by == TIMED_OUT else took
        return self.plainly[key]

    def try_out(self, mutant: Mutant) -> Verdict:
        tests = tests_of(mutant.file)
        took = self.without_a_mutant(tests)
        text = mutant.text_of((ROOT / mutant.file).read_text())
        limit = min(EACH, self.left())
        status, by = self.run(tests, {inside(ROOT / mutant.file): text})
        if by == TIMED_OUT and (took is None or took > limit / 3):
            return UNDECIDED, f"no test failed within {limit:.0f} s"
        return status, by


def say(mutant: Mutant, status: str, by: str) -> None:
    warning = "warning: " if status == SURVIVED else ""
    how = f" ({by})" if by else ""
    print(f"[mutants] {warning}{mutant.file}:{mutant.line}: {status}{how}")
    if status != KILLED:
        print(f"  - {mutant.before.strip()}")
        for line in mutant.after.splitlines() or [""]:
            print(f"  + {line.strip()}", flush=True)


def main(seed: int, count: int) -> None:
    start = time.monotonic()
    since = base()
    if since is None:
        print("[skip] mutants: no older commit is here, so no line is known to be new")
        return
    where = f"the lines of py that changed since {since[:9]}, SEED={seed}"
    lines = sampling.changed_lines(since)
    mutants = chosen(lines, seed, start + GENERATING)
    listed = sampling.equivalent()
    counts: dict[str, int] = {KILLED: 0, SURVIVED: 0, UNDECIDED: 0}
    pool = Pool(PYTHONS[NATIVE], {"PYTHONDONTWRITEBYTECODE": "1"})
    with contextlib.closing(pool):
        spot = Spot(pool, start + SECONDS)
        for mutant in mutants:
            if sum(counts.values()) == count or spot.left() < 1:
                break
            if is_worth_it(mutant, listed):
                status, by = spot.try_out(mutant)
                counts[status] += 1
                say(mutant, status, by)
    shutil.rmtree(FOLDER, ignore_errors=True)
    if not sum(counts.values()):
        print(f"[mutants] no mutant was tried of {where}")
        return
    told = ", ".join(f"{number} {status}" for status, number in counts.items())
    took = time.monotonic() - start
    print(f"[mutants] {told}, of {where}: {took:.0f} s")


def end(*_: object) -> None:
    end_all()
    raise KeyboardInterrupt


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    options_ = parser.parse_args()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        main(options_.seed, options_.count)
    except (KeyboardInterrupt, EndedError):
        sys.exit(130)
    except BrokenError as error:
        sys.exit(f"[mutants] {error}")
    finally:
        end_all()
