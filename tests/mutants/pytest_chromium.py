"""A plugin of pytest for tests that drive Chromium, so that both cost little for each mutant.

With MUTANTS_COVERAGE, a folder, what each test ran is written there:
folder/NUMBER/coverage-NUMBER.json, as NODE_V8_COVERAGE does, and index.json,
{name: [seconds, number]}, in which "" is what ran while pages were set up.

With MUTANTS_ASKED, it collects the tests and keeps its browser and its server; each line of JSON on
stdin, {"file", "text", "tests"}, runs these tests until one fails, in pages that get the file `text`
in the place of `file` of js/dist. It answers with a line of JSON, the name of that test, or "".
"""

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from model import ROOT
from playwright.sync_api import BrowserContext, CDPSession, Error, Page

ASKED = os.environ.get("MUTANTS_ASKED")
COVERAGE = os.environ.get("MUTANTS_COVERAGE")
DIST = ROOT / "js" / "dist"

new_page = BrowserContext.new_page
sessions: list[CDPSession] = []
index: dict[str, tuple[float, int]] = {}
served: dict[str, str] = {}  # path of the server -> file
failed: list[str] = []

if ASKED:  # pytest takes both for itself, and prints
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


# --- mutants ---


def pytest_configure() -> None:
    from serve import Handler  # it is on the path of pytest's settings

    translate = Handler.translate_path

    def translate_path(self: Handler, path: str) -> str:
        return served.get(urlsplit(path).path) or translate(self, path)

    Handler.translate_path = translate_path  # type: ignore[method-assign]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        failed.append(report.nodeid)
        print(report.nodeid, report.longreprtext, sep="\n", file=sys.stderr, flush=True)


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if not ASKED:
        return None
    items = {item.nodeid: item for item in session.items}
    for line in requests:
        request = json.loads(line)
        served.clear()
        served[f"/js/{request['file']}"] = request["text"]
        failed.clear()
        run_until_one_fails([items[name] for name in request["tests"]])
        answers.write(json.dumps(failed[0] if failed else "") + "\n")
        answers.flush()
    return True


def run_until_one_fails(items: list[pytest.Item]) -> None:
    """Then pages and what else a module has end; the browser and the server stay."""
    elsewhere: Any = Elsewhere(items[0].session)
    for item, following in zip(items, [*items[1:], elsewhere], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            break
    items[0].session._setupstate.teardown_exact(elsewhere)


class Elsewhere:
    """A test of no module, which comes next."""

    def __init__(self, session: pytest.Session):
        self.session = session

    def listchain(self) -> list[pytest.Session]:
        return [self.session]


# --- which lines tests run ---


def watched_page(context: BrowserContext) -> Page:
    page = new_page(context)
    session = context.new_cdp_session(page)
    session.send("Profiler.enable")
    kinds = {"callCount": True, "detailed": True}
    session.send("Profiler.startPreciseCoverage", kinds)
    sessions.append(session)
    return page


if COVERAGE:
    BrowserContext.new_page = watched_page  # type: ignore[method-assign]


def ran_since() -> list[dict[str, Any]]:
    """What pages ran of the library since the last call."""
    found = []
    for session in list(sessions):
        try:
            scripts = session.send("Profiler.takePreciseCoverage")["result"]
        except Error:  # the page is closed
            sessions.remove(session)
            continue
        for script in scripts:
            path = urlsplit(script["url"]).path
            if path.startswith("/js/") and path.endswith(".js"):
                file = (DIST / path.removeprefix("/js/")).as_uri()
                found.append({"url": file, "functions": script["functions"]})
    return found


def keep(name: str, seconds: float) -> None:
    if not COVERAGE:
        return
    number = index[name][1] if name in index else len(index)
    index[name] = round(seconds, 2), number
    folder = Path(COVERAGE) / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"coverage-{len(list(folder.iterdir()))}.json"
    place.write_text(json.dumps({"result": ran_since()}))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    yield
    keep("", 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test that fails, or is skipped, is not kept."""
    start = time.monotonic()
    yield
    keep(item.nodeid, time.monotonic() - start)


def pytest_sessionfinish() -> None:
    if COVERAGE:
        (Path(COVERAGE) / "index.json").write_text(json.dumps(index))
