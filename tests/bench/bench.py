"""Measure us, today's ways and the floor side by side: all ways of a row in one page of headless
Chromium and, if a row is only Python, in this CPython as well.

Writes build/bench.json (one row for each path, way and size) and build/bench.md; a whole run writes
tests/bench/RESULTS.md and results.svg, too. Every row's result was checked. Only ratios within one
run mean anything: the machine's load and its (software) GPU differ from run to run.

Usage: python tests/bench/bench.py [--quick] [--only PATH]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "web"), str(ROOT / "tests" / "browser" / "hosts")]

import exchange
from browser import BrowserMissingError, open_browser, open_page
from file_server import MakingHandler
from playwright.sync_api import Browser, Page
from plot import draw, human, panels
from serve import Server

BUILD = ROOT / "build"
RESULTS = ROOT / "tests" / "bench" / "RESULTS.md"


@contextmanager
def bench_page(url: str) -> Iterator[tuple[Browser, Page]]:
    """A new browser with bench.html, whose complaints are raised."""
    with (
        open_browser(["--js-flags=--expose-gc"], patient_s=7200) as browser,
        open_page(browser, url) as (page, watch),
    ):
        page.on("console", lambda message: print(f"  {message.text}", flush=True))
        page.goto(f"{url}tests/bench/bench.html")
        yield browser, page
        if watch.complaints():
            raise RuntimeError("\n".join(watch.complaints()))


def measure(quick: bool, only: str | None) -> dict:
    """The machine's facts and the rows. `only`: the rows of one path. A whole run starts a browser for each
    path: GPU processes keep memory that they used once."""
    native = []
    if only in (None, "python", "wire"):
        print("  python, natively", flush=True)
        native = json.loads(exchange.measure("native", quick))
    mounts = {"/tests/": ROOT / "tests"}
    with Server(mounts=mounts, handler=MakingHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        paths = [only]
        if not quick and only is None:
            with bench_page(server.url) as (_, page):
                paths = page.evaluate("() => globalThis.paths")
        result: dict = {"rows": [], "failed": []}
        for path in paths:
            with bench_page(server.url) as (browser, page):
                options = {"quick": quick, "only": path}
                found = page.evaluate("(options) => globalThis.bench(options)", options)
                result["machine"] = found["machine"]
                result["rows"] += found["rows"]
                result["failed"] += found["failed"]
                if path == "first step":
                    rounds = 2 if quick else 5
                    result["rows"] += first_steps(browser, server.url, rounds)
        server.shutdown()
    result["rows"] = native + result["rows"]
    result["machine"] |= {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_after": round(os.getloadavg()[0], 2),
        "quick": quick,
    }
    return result


def first_steps(browser: Browser, url: str, rounds: int) -> list[dict]:
    """The first training step of tinygrad: on the second visit, and in a browser that has kept no
    kernels."""
    seconds: dict[str, list[float]] = {"dlpack-web": [], "dlpack-web, first visit": []}
    for turn in range(rounds):
        print(f"  first step of tinygrad, {turn + 1} of {rounds}", flush=True)
        with open_page(browser, url) as (page, _):
            for way in reversed(seconds):
                page.goto(f"{url}tests/bench/bench.html")
                took, before, now = page.evaluate("() => globalThis.firstStep()")
                seconds[way].append(took)
                is_first = "first" in way
                if (before == 0) != is_first or (now > before) != is_first:
                    raise RuntimeError(f"{way}: {before} kernels were kept, {now} made")
                page.wait_for_timeout(4000)  # the browser keeps what is new
    row = {"path": "first step", "layout": "Network", "bytes": 2048, "where": "page"}
    return [row | exchange.figures(way, seconds[way]) for way in seconds]


HEAD = [
    "| what | way | median | IQR | JS blocked | n | relative to us |",
    "|---|---|--:|--:|--:|--:|--:|",
]


def tables(rows: list[dict]) -> list[str]:
    """A Markdown table for each path, with the rows of each comparison."""
    by_path: dict[str, list[str]] = {}
    for title, group in panels(rows):
        path, _, what = title.partition(", ")
        lines = by_path.setdefault(path, ["", f"### {path}", "", *HEAD])
        ours = group[0]["median_ms"]
        for row in sorted(group, key=lambda row: row["median_ms"]):
            cells = [what, row["way"], human(row["median_ms"]), human(row["iqr_ms"])]
            cells.append(human(row["js_ms"]) if "js_ms" in row else "")
            relative = (
                f"{row['median_ms'] / ours:.2f}" if ours else ""
            )  # a very short run
            lines.append(f"| {' | '.join([*cells, str(row['n']), relative])} |")
    return [line for lines in by_path.values() for line in lines]


def report(result: dict) -> str:
    """RESULTS.md with other figures: its text stays."""
    text, *_ = re.split(
        "^browser: ", RESULTS.read_text(), maxsplit=1, flags=re.MULTILINE
    )
    machine = ", ".join(f"{key}: {value}" for key, value in result["machine"].items())
    lost = [f"Failed: {row}" for row in result["failed"]]
    return "\n".join([text + machine, *lost, *tables(result["rows"]), ""])


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure dlpack-web in Chromium.")
    quick = "few rounds, sizes of at most 1 MiB, no first step: does it work?"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", metavar="PATH", help="one path, such as upload")
    options = parser.parse_args()
    try:
        result = measure(options.quick, options.only)
    except BrowserMissingError as error:
        print(error)
        return 2
    if not result["rows"] + result["failed"]:
        print(f"No row is called {options.only}", file=sys.stderr)
        return 2
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    text = report(result)
    (BUILD / "bench.md").write_text(text)
    if not options.quick and options.only is None:
        RESULTS.write_text(text)
        draw(result["rows"], RESULTS.with_name("results.svg"))
    print(text)
    print("build/bench.json, build/bench.md")
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
