"""Python of the pages starts from kept memory, and from nothing where that is not to be had."""

from __future__ import annotations

import gzip

import pytest
from browser import is_firefox, open_page
from playwright.sync_api import Browser, Route
from serve import SITE, Server

# Starts Python in the page; what a program says, and how often the memory was fetched.
START = """async (program) => {
  const { startPyodide } = await import("/start.mjs");
  const pyodide = await startPyodide(`${location.origin}/pyodide/`);
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const { length } = performance.getEntriesByType("resource").filter(
    ({ name }) => name.endsWith("/pyodide/snapshot.bin"));
  return [await pyodide.runPythonAsync(program), length];
}"""
# The same without the module, to compare.
FROM_NOTHING = """async (program) => {
  const { loadPyodide } = await import("/pyodide/pyodide.mjs");
  const pyodide = await loadPyodide();
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  return pyodide.runPythonAsync(program);
}"""
TOTAL = "import numpy; float(numpy.arange(4).sum())"
MEMORY = SITE / "pyodide" / "snapshot.bin"


def of_another_build() -> bytes:
    memory = bytearray(gzip.decompress(MEMORY.read_bytes()))
    memory[20] ^= 1  # in the build's name
    return gzip.compress(memory, 1)


@pytest.fixture
def start(browser: Browser, server: Server):
    def start(
        program: str = TOTAL,
        script: str = "",
        answer: dict[str, object] | None = None,
        **options: str,
    ):
        with open_page(browser, server.url, **options) as (page, watch):
            page.add_init_script(script)
            if answer is not None:

                def fulfil(route: Route) -> None:
                    route.fulfill(**answer)

                page.route("**/snapshot.bin", fulfil)
            page.goto(f"{server.url}404.html")
            found, fetched = page.evaluate(START, program)
            return found, fetched, watch.complaints()

    return start


def test_it_starts_from_kept_memory_with_a_seed_of_its_own(start):
    program = "import random; random.random()"
    one, fetched, complaints = start(program)
    assert (fetched, complaints) == (1, [])
    other, _, _ = start(program)
    assert one != other, "the kept memory's seed is everybody's"


def test_python_can_wait_for_javascript(start):
    program = """
import asyncio
from pyodide.ffi import run_sync
run_sync(asyncio.sleep(0, "slept"))
"""
    assert start(program) == ("slept", 1, [])


LOCAL = """
import locale, os, sys, time
from datetime import datetime
moments = [datetime(2026, month, 1).astimezone() for month in (1, 7)]
str([
  sorted(os.environ.items()), sorted(sys.modules), sys.path, sys.argv, sys.flags,
  locale.getlocale(), locale.getencoding(), os.getcwd(), sorted(os.listdir()),
  time.timezone, time.altzone, time.daylight, time.tzname,
  *((str(moment), moment.tzname()) for moment in moments),
])
"""


@pytest.mark.parametrize(
    ("zone", "language"),
    [
        ("America/New_York", "fr"),
        ("Australia/Lord_Howe", "de-DE"),  # summer in January, by half an hour
    ],
)
def test_what_python_knows_of_the_reader_is_as_from_nothing(
    start, browser, server, zone, language
):
    options = {"timezone_id": zone, "locale": language}
    with open_page(browser, server.url, **options) as (page, _):
        page.goto(f"{server.url}404.html")
        expected = page.evaluate(FROM_NOTHING, LOCAL)
    found, fetched, complaints = start(LOCAL, **options)
    assert (fetched, complaints) == (1, [])
    assert found == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(None, id="missing"),
        pytest.param(lambda: MEMORY.read_bytes()[:100_000], id="cut off"),
        pytest.param(lambda: gzip.compress(b"a"), id="a byte"),
        pytest.param(of_another_build, id="of another build"),
    ],
)
def test_it_starts_from_nothing_where_the_memory_cannot_be_used(start, body):
    answer = {"body": body()} if body else {"status": 404}
    total, fetched, complaints = start(answer=answer)
    assert (total, fetched) == (6, 1)
    # Firefox reports what a stream rejects with, though the page has caught it.
    known = ("404", "input is ended") if is_firefox() else ("404",)
    assert all(any(text in each for text in known) for each in complaints), complaints


@pytest.mark.parametrize(
    "script",
    [
        "Object.defineProperty(navigator, 'connection', {value: {saveData: true}})",
        "Object.defineProperty(navigator, 'connection', {value: {effectiveType: '3g'}})",
        "delete WebAssembly.Suspending",
    ],
)
def test_it_is_not_fetched_where_it_does_not_help(start, script):
    assert start(script=script) == (6, 0, [])
