"""Runs chosen tests of pytest on a mutant, the fastest first, until one fails."""

import contextlib
import json
import os
import queue
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from limits import TIMED_OUT, Warm
from model import BUILD, HERE, KILLED, SURVIVED, Outcome

Seconds = Mapping[str, float]  # of each test, without a mutant


def within(tests: Seconds, budget: float) -> dict[str, float]:
    """The fastest, as many as the budget allows; one at least, where there is any."""
    chosen: dict[str, float] = {}
    for name in sorted(tests, key=lambda name: (tests[name], name)):
        if chosen and sum(chosen.values()) + tests[name] > budget:
            break
        chosen[name] = tests[name]
    return chosen


def likeliest(tests: Seconds, every: Seconds, slow: float = 0.5) -> dict[str, float]:
    """Of a few files, those of whose tests most run the line: they are about it, and to import
    all files takes longer than to run most of their tests. None with a slow test, which may
    be what a fixture costs."""
    files: dict[str, list[str]] = {}
    for name in every:
        files.setdefault(name.partition("::")[0], []).append(name)

    def share(file: str) -> tuple[float, int]:
        running = sum(name in tests for name in files[file])
        return running / len(files[file]), running

    quick = [
        file for file, names in files.items() if max(every[it] for it in names) < slow
    ]
    chosen = sorted(quick, key=share, reverse=True)[:6]
    return {it: took for it, took in tests.items() if it.partition("::")[0] in chosen}


def environment(package: Path, scratch: Path) -> dict[str, str]:
    """Little of this process's own: a mutant's tests are the same everywhere."""
    kept = ("PATH", "HOME", "LANG", "VK_ICD_FILENAMES", "VK_DRIVER_FILES")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": f"{package}:{HERE}",
        "PYTHONPYCACHEPREFIX": str(BUILD / "pycache"),
        "OPENBLAS_NUM_THREADS": "1",  # a fork has no threads
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "TMPDIR": str(scratch),
    }


def options(files: list[str], scratch: Path) -> list[str]:
    given = [
        "-x",
        "-q",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_mutants",
    ]
    given += [
        "--basetemp",
        str(scratch / "pytest"),
        "-W",
        "ignore::pytest.PytestWarning",
    ]
    return [*given, *files]


class Pool:
    """Warm Pythons, one for each worker that runs tests at a time."""

    def __init__(self, python: Path, env: Mapping[str, str]):
        self.python, self.env = python, env
        self.idle: queue.SimpleQueue[Warm] = queue.SimpleQueue()

    @contextlib.contextmanager
    def one(self) -> Iterator[Warm]:
        try:
            warm = self.idle.get_nowait()
        except queue.Empty:
            env = {**environment(Path(os.devnull), BUILD), **self.env}
            warm = Warm(self.python, env)
        yield warm
        self.idle.put(warm)  # not where it failed

    def close(self) -> None:
        while not self.idle.empty():
            self.idle.get().close()


def run_tests(
    tests: Seconds,
    folder: Path,
    pool: Pool,
    package: Path,
    *,
    slower: float = 1,
    address_bytes: int | None,
) -> Outcome:
    plan, log = folder / "plan.json", folder / "log.txt"
    plan.write_text(json.dumps(tests))
    files = sorted({name.partition("::")[0] for name in tests})
    limit = (60 + 4 * sum(tests.values())) * slower
    env = {**environment(package, folder), "MUTANTS_PLAN": str(plan)}
    env |= {"MUTANTS_SLOWER": str(slower), "PYTHONPATH": f"{package}:{HERE}"}
    with pool.one() as warm:
        status = warm.run(
            options(files, folder),
            limit,
            path=package,
            env=env,
            log=log,
            address_bytes=address_bytes,
        )
    return outcome_of(status, log)


def outcome_of(status: int | str, log: Path) -> Outcome:
    """What a run of pytest says of the mutant."""
    if status == 0:
        return Outcome(SURVIVED)
    if status == TIMED_OUT:
        return Outcome(KILLED, TIMED_OUT)
    said = log.read_text(errors="replace")
    if status == 1 and (
        failed := re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    ):
        return Outcome(KILLED, failed[1])
    if status == 2 or "while loading conftest" in said:
        return Outcome(KILLED, "import or collection")
    if isinstance(status, int) and (status < 0 or status == 1 or status > 5):
        return Outcome(KILLED, f"exit status {status}")
    raise RuntimeError(f"pytest ended with {status}:\n{said[-2000:]}")
