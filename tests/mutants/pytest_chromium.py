"""A plugin of pytest for tests that drive Chromium. With MUTANT_SERVED, a file of js/dist, pages get
what the file MUTANT_TEXT has in its place. With MUTANTS_COVERAGE, a folder, what each test ran is
written there: folder/NUMBER/coverage-NUMBER.json, as NODE_V8_COVERAGE does, and index.json,
{name: [seconds, number]}, in which "" is what ran while pages were set up."""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from model import ROOT
from playwright.sync_api import BrowserContext, CDPSession, Error, Page, Route

SERVED = os.environ.get("MUTANT_SERVED")
COVERAGE = os.environ.get("MUTANTS_COVERAGE")
DIST = ROOT / "js" / "dist"

new_page = BrowserContext.new_page
sessions: list[CDPSession] = []
index: dict[str, tuple[float, int]] = {}


def watched_page(context: BrowserContext) -> Page:
    if SERVED:
        context.route(lambda url: urlsplit(url).path == f"/js/{SERVED}", give_mutant)
    page = new_page(context)
    if COVERAGE:
        session = context.new_cdp_session(page)
        session.send("Profiler.enable")
        kinds = {"callCount": True, "detailed": True}
        session.send("Profiler.startPreciseCoverage", kinds)
        sessions.append(session)
    return page


BrowserContext.new_page = watched_page  # type: ignore[method-assign]


def give_mutant(route: Route) -> None:
    route.fulfill(path=os.environ["MUTANT_TEXT"], content_type="text/javascript")


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
    """A test that fails is not kept."""
    start = time.monotonic()
    yield
    keep(item.nodeid, time.monotonic() - start)


def pytest_sessionfinish() -> None:
    if COVERAGE:
        (Path(COVERAGE) / "index.json").write_text(json.dumps(index))
