"""Which tests run which lines: made once for each file of tests, and kept."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from limits import run
from model import ROOT, digest
from pytest_runs import environment, options


@dataclass(frozen=True)
class Suite:
    python: Path
    tests: Sequence[Path]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Covering:
    folder: Path
    suites: Sequence[Suite]
    sources: str  # digest of what is tested
    package: Path  # what is recorded, on Python's path
    env: Mapping[str, str]  # how it is recorded
    #: "file:line" of each thing that the plugin recorded
    places: Callable[[set[Any]], Mapping[Any, str]]

    def kept(self, test: Path) -> Path:
        key = digest(self.sources, test.read_bytes())
        return self.folder / "map" / f"{test.parent.name}-{test.stem}-{key}.json"

    def record(self) -> None:
        """For each file of tests that has no map: its tests, their seconds and lines."""
        (self.folder / "map").mkdir(parents=True, exist_ok=True)
        for suite in self.suites:
            stale = [test for test in suite.tests if not self.kept(test).exists()]
            if stale:
                self.record_some(suite, stale)

    def record_some(self, suite: Suite, stale: list[Path]) -> None:
        names = [str(test.relative_to(ROOT)) for test in sorted(stale)]
        print(f"[mutants] which lines {len(stale)} files of tests run", flush=True)
        record, log = self.folder / "record.json", self.folder / "record.txt"
        record.unlink(missing_ok=True)
        env = {**environment(self.package, self.folder), **suite.env, **self.env}
        env["MUTANTS_RECORD"] = str(record)
        given = [it for it in options(names, self.folder) if it != "-x"]
        arguments = [suite.python, "-m", "pytest", *given]
        status = run(arguments, 3600, env=env, cwd=ROOT, log=log)
        if status not in (0, 1) or not record.exists():
            raise SystemExit(f"the tests fail without a mutant: {log}")
        shutil.rmtree(self.folder / "pytest", ignore_errors=True)
        found = json.loads(record.read_text())
        failed = set(found.pop("failed", [0, []])[1])
        for name in sorted(failed):
            print(f"[mutants] not used, because it fails without a mutant: {name}")
        places = self.places({it for _, them in found.values() for it in them})
        imported = found.pop("", [0, []])[1]
        for test in stale:
            prefix = f"{test.relative_to(ROOT)}::"
            tests = {"": [0, imported]} | {
                name: entry
                for name, entry in found.items()
                if name.startswith(prefix) and name not in failed
            }
            self.keep(test, tests, places)

    def keep(
        self, test: Path, tests: Mapping[str, Any], places: Mapping[Any, str]
    ) -> None:
        entries = {
            name: [seconds, sorted({places[it] for it in them if it in places})]
            for name, (seconds, them) in tests.items()
        }
        for old in self.kept(test).parent.glob(
            f"{test.parent.name}-{test.stem}-*.json"
        ):
            old.unlink()
        self.kept(test).write_text(json.dumps(entries))

    @cached_property
    def read(self) -> tuple[dict[str, float], dict[str, dict[int, set[str]]]]:
        """Seconds of each test; of each file's lines the tests, "" being the import."""
        seconds: dict[str, float] = {}
        lines: dict[str, dict[int, set[str]]] = {}
        for suite in self.suites:
            for test in sorted(suite.tests):
                entries = json.loads(self.kept(test).read_text())
                for name, (took, places) in entries.items():
                    if name:
                        seconds[name] = took
                    for place in places:
                        file, _, line = place.partition(":")
                        lines.setdefault(file, {}).setdefault(int(line), set()).add(
                            name
                        )
        return seconds, lines

    def tests_of(
        self, file: str, lines: Callable[[list[int]], list[int]]
    ) -> dict[str, float]:
        """Tests that run one of the lines, which `lines` chooses of those that are known. All
        that run the file, where importing it runs the line, or where none is chosen."""
        seconds, known = self.read
        of_file = known.get(file, {})
        chosen = lines(sorted(of_file))
        tests = set().union(*(of_file[line] for line in chosen))
        if not chosen or "" in tests:
            tests |= set().union(*of_file.values())
        return {test: seconds[test] for test in tests if test}
