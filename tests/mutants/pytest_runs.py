"""Runs chosen tests of pytest on a mutant, the fastest first, until one fails."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from limits import TIMED_OUT, run
from model import BUILD, HERE, KILLED, ROOT, SURVIVED, Outcome

Seconds = Mapping[str, float]  # of each test, without a mutant


def within(tests: Seconds, budget: float) -> dict[str, float]:
    """The fastest, as many as the budget allows; one at least."""
    chosen: dict[str, float] = {}
    for name in sorted(tests, key=lambda name: (tests[name], name)):
        if chosen and sum(chosen.values()) + tests[name] > budget:
            break
        chosen[name] = tests[name]
    return chosen


def environment(package: Path, scratch: Path) -> dict[str, str]:
    """Little of this process's own: a mutant's tests are the same everywhere."""
    kept = ("PATH", "HOME", "LANG", "VK_ICD_FILENAMES", "VK_DRIVER_FILES")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": f"{package}:{HERE}",
        "PYTHONPYCACHEPREFIX": str(BUILD / "pycache"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "TMPDIR": str(scratch),
    }


def command(python: Path, files: list[str], scratch: Path) -> list[str | Path]:
    options = [
        "-x",
        "-q",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_mutants",
    ]
    options += [
        "--basetemp",
        str(scratch / "pytest"),
        "-W",
        "ignore::pytest.PytestWarning",
    ]
    return [python, "-m", "pytest", *options, *files]


def run_tests(
    tests: Seconds,
    folder: Path,
    python: Path,
    env: Mapping[str, str],
    *,
    slower: float = 1,
    address_bytes: int | None,
) -> Outcome:
    plan, log = folder / "plan.json", folder / "log.txt"
    plan.write_text(json.dumps(tests))
    files = sorted({name.partition("::")[0] for name in tests})
    env = {**env, "MUTANTS_PLAN": str(plan), "MUTANTS_SLOWER": str(slower)}
    limit = (60 + 4 * sum(tests.values())) * slower
    status = run(
        command(python, files, folder),
        limit,
        env=env,
        cwd=ROOT,
        log=log,
        address_bytes=address_bytes,
    )
    if status == 0:
        return Outcome(SURVIVED)
    if status == TIMED_OUT:
        return Outcome(KILLED, TIMED_OUT)
    said = log.read_text(errors="replace")
    if status == 1 and (
        failed := re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    ):
        return Outcome(KILLED, failed[1])
    if status == 2:
        return Outcome(KILLED, "import or collection")
    if isinstance(status, int) and (status < 0 or status == 1 or status > 5):
        return Outcome(KILLED, f"exit status {status}")
    raise RuntimeError(f"pytest ended with {status}:\n{said[-2000:]}")
