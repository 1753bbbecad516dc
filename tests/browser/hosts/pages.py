"""The test pages, driven from the host."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from browser import Watch
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[3]
# Folders of cases: in JavaScript, for the server; in Python, in the repository.
CASES_JS, CASES_PY = "/tests/browser/cases/js/", "tests/browser/cases/py/"
# pytest and what it needs, all pure Python: packed from the host's own environment, so
# that both runs are of the same version.
PYTEST_PARTS = ["pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"]


def pack_tests(target: Path, site_packages: Path) -> None:
    """A zip with pytest in `site/`, and the tests and their settings in `repo/`."""
    with zipfile.ZipFile(target, "w") as bundle:
        sources = [site_packages / "py.py"]  # a module of pytest's beside its packages
        for part in PYTEST_PARTS:
            sources += (site_packages / part).rglob("*.py")
        for path in sources:
            bundle.write(path, Path("site") / path.relative_to(site_packages))
        folders = ROOT / "tests", *sorted((ROOT / "packages").glob("*/tests"))
        files = [path for folder in folders for path in sorted(folder.rglob("*"))]
        for path in (ROOT / "pyproject.toml", *files):
            # The host's conftest.py drives a browser: not a thing to do in one.
            host = path.name == "conftest.py" and path.parent.name == "browser"
            if path.suffix in {".py", ".json", ".toml", ".txt"} and not host:
                bundle.write(path, Path("repo") / path.relative_to(ROOT))


@dataclass
class Outcome:
    """What a run inside a page reported, test by test."""

    reports: list[dict[str, str]]
    log: str = ""

    def of(self, kind: str) -> list[dict[str, str]]:
        return [report for report in self.reports if report["outcome"] == kind]

    def summary(self) -> str:
        return ", ".join(
            f"{len(self.of(kind))} {kind}" for kind in ("passed", "failed", "skipped")
        )

    def must_pass(self) -> None:
        """Raise with every traceback of the page, unless all is well."""
        failed = self.of("failed")
        if failed:
            details = [f"--- {each['id']}\n{each['detail']}" for each in failed]
            raise AssertionError("\n".join([self.summary(), *details]))
        assert self.reports, f"nothing ran in the page:\n{self.log}"


@dataclass
class Harness:
    """Pyodide and dlpack-web somewhere, driven by what harness.mjs offers."""

    bundle: str
    outcomes: list[Outcome] = field(default_factory=list, kw_only=True)

    def call(self, name: str, *args: object) -> object:
        raise NotImplementedError

    def python(self, source: str) -> object:
        return self.call("python", source)

    def python_sync(self, source: str) -> object:
        return self.call("pythonSync", source)

    def pytest(self, files: Sequence[str]) -> Outcome:
        whole = os.environ.get("WHOLE", "")
        return self._keep(self.call("pytest", self.bundle, list(files), whole))

    def cases(self, module: str, only: str | None = None) -> Outcome:
        return self._keep(self.call("cases", module, only))

    def _keep(self, result: object) -> Outcome:
        outcome = Outcome(**result)  # type: ignore[arg-type]
        self.outcomes.append(outcome)
        return outcome


@dataclass
class TestPage(Harness):
    """A page with them in it."""

    __test__ = False  # not a test class, whatever its name suggests to pytest

    page: Page
    watch: Watch

    def call(self, name: str, *args: object) -> object:
        return self.page.evaluate(
            "([name, args]) => globalThis.harness[name](...args)", [name, list(args)]
        )


def inside(harnesses: Iterable[tuple[str, Harness]]) -> Iterator[str]:
    """What ran inside them, in lines: the host sees only a test for each file."""
    for name, harness in harnesses:
        if not harness.outcomes:
            continue
        everything = Outcome(
            [r for outcome in harness.outcomes for r in outcome.reports]
        )
        yield f"inside {name}: {everything.summary()}"
        skipped = sorted(everything.of("skipped"), key=lambda report: report["detail"])
        for reason, group in groupby(skipped, lambda report: report["detail"]):
            # One name for all parameters of a test.
            names = [r["id"].removeprefix("tests/").split("[")[0] for r in group]
            yield f"  {reason} ({len(names)}): {', '.join(dict.fromkeys(names))}"
