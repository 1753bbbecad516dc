"""Measure us, today's ways and the floor side by side: in one page of headless Chromium,
in Node what needs no GPU and, what is only Python, in this CPython as well.

Writes build/bench.json (one row for each path, way and size) and build/bench.md; a whole
run writes tests/bench/RESULTS.md and results.svg, too.
Every row's result was checked. Only ratios within one run mean
anything: the machine's load and its (software) GPU differ from run to run.

Usage: python tests/bench/bench.py [--quick] [--only PATH]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
sys.path[:0] = [
    str(ROOT / "web"),
    str(TESTS / "browser" / "hosts"),
    str(TESTS / "lite"),
]

import exchange
import timing
from browser import BrowserMissingError, open_browser, open_page
from file_server import MakingHandler
from playwright.sync_api import Browser
from plot import OURS, panels, summarise
from serve import Server
from words import human

BUILD = ROOT / "build"


def measure(quick: bool, only: str | None) -> dict:
    """Run both; the machine's facts and the rows. `only`: the rows of one path."""
    native = []
    if only in (None, "python", "wire"):
        print("  python, natively", flush=True)
        native = json.loads(exchange.measure("native", quick))
    if only in (None, "pack", "convert"):
        print("  pack and convert, in Node", flush=True)
        native += measure_in_node(quick, only)
    mounts = {"/tests/": ROOT / "tests"}
    with Server(mounts=mounts, handler=MakingHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with (
            open_browser(["--js-flags=--expose-gc"], patient_s=7200) as browser,
            open_page(browser, server.url) as (page, watch),
        ):
            page.on("console", lambda message: print(f"  {message.text}", flush=True))
            page.goto(f"{server.url}tests/bench/bench.html")
            result = page.evaluate(
                "(options) => globalThis.bench(options)",
                {"quick": quick, "only": only},
            )
            if watch.complaints():
                raise RuntimeError("\n".join(watch.complaints()))
            if only in (None, "first calls"):
                result["rows"] += first_calls(browser, server.url, 1 if quick else 9)
            if only == "first step" or (only is None and not quick):
                result["rows"] += first_steps(browser, server.url, 1 if quick else 5)
        server.shutdown()
    if only == "lite" or (only is None and not quick):
        result["rows"] += first_results(1 if quick else 5)
    result["rows"] = native + result["rows"]
    result["machine"] |= {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_after": round(os.getloadavg()[0], 2),
        "quick": quick,
    }
    return result


def first_steps(browser: Browser, url: str, rounds: int) -> list[dict]:
    """The first training step of tinygrad: in a browser that has kept no kernels, and on
    the next visit."""
    seconds: dict[str, list[float]] = {OURS: [], f"{OURS}, first visit": []}
    for turn in range(rounds):
        print(f"  first step of tinygrad, {turn + 1} of {rounds}", flush=True)
        with open_page(browser, url) as (page, _):
            for way, samples in reversed(seconds.items()):
                page.goto(f"{url}tests/bench/bench.html")
                took, before, now = page.evaluate("() => globalThis.firstStep()")
                samples.append(took)
                if (before == 0, before == now) != (way != OURS, way == OURS):
                    raise RuntimeError(f"{way}: {before} kernels were kept, {now} made")
                page.wait_for_timeout(4000)  # the browser keeps what is new
    common = {"path": "first step", "layout": "Network", "bytes": 2048, "where": "page"}
    return rows_of(common, seconds)


def first_calls(browser: Browser, url: str, rounds: int) -> list[dict]:
    """Each of the first 100 calls of a kernel in a fresh page."""
    ways = (OURS, f"{OURS}, from JavaScript", "floor")
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds):
        print(f"  first calls of a kernel, {turn + 1} of {rounds}", flush=True)
        for way in random.sample(ways, len(ways)):
            with open_page(browser, url) as (page, _):
                page.goto(f"{url}tests/bench/bench.html")
                ask = "(way) => globalThis.firstCalls(way, 100)"
                seconds[way].append(page.evaluate(ask, way) / 1000)
    common = {"path": "first calls", "layout": "100 of them", "bytes": 64}
    return rows_of(common | {"where": "page"}, seconds)


def first_results(rounds: int) -> list[dict]:
    """From opening a notebook in JupyterLite to what its first cells say."""
    first, gpu, megabytes = zip(*timing.measure(rounds), strict=True)
    common = {"path": "lite", "layout": "first GPU result", "where": "page"}
    common["bytes"] = int(median(megabytes) * 1e6)
    return rows_of(common, {"floor": first, OURS: gpu})


def rows_of(common: dict, seconds: dict[str, Sequence[float]]) -> list[dict]:
    """A row for each way, of how many seconds its runs took."""
    return [
        common
        | {
            "way": way,
            "median_ms": 1e3 * median(samples),
            "iqr_ms": 1e3 * spread(samples),
            "n": len(samples),
        }
        for way, samples in seconds.items()
    ]


def spread(samples: list[float]) -> float:
    """The interquartile range."""
    if len(samples) < 2:
        return 0
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return high - low


def measure_in_node(quick: bool, only: str | None) -> list[dict]:
    command = ["node", str(ROOT / "tests" / "bench" / "node.mjs")]
    command += ["--quick"] * quick + [only] * (only is not None)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[dict] = json.loads(done.stdout)
    return rows


def tables(rows: list[dict]) -> list[str]:
    """A Markdown table for each path, with the rows of each comparison."""
    by_path: dict[str, list[str]] = {}
    for title, group in panels(rows):
        path, _, what = title.partition(", ")
        lines = by_path.setdefault(path, ["", f"### {path}", "", *HEAD])
        ours = next(row["median_ms"] for row in group if row["way"] == OURS)
        ours = ours or math.nan  # one short run, between two ticks of the clock
        for row in sorted(group, key=lambda row: row["median_ms"]):
            blocked = human(row["js_ms"]) if "js_ms" in row else ""
            lines.append(
                f"| {what} | {row['way']} | {human(row['median_ms'])} | {human(row['iqr_ms'])} "
                f"| {blocked} | {row['n']} | {row['median_ms'] / ours:.2f} |"
            )
    return [line for lines in by_path.values() for line in lines]


HEAD = (
    "| what | way | median | IQR | JS blocked | n | relative to us |",
    "|---|---|--:|--:|--:|--:|--:|",
)
INTRODUCTION = """\
# dlpack-web: measurements

Medians with the interquartile range (IQR) over n batches, in random order in every
round of one process; every result was checked. Uploads and downloads are timed until the
GPU had finished; `JS blocked` is the part during which JavaScript could do nothing
else. dlpack-web keeps buffers that are no longer used, and takes them again: its rows are
warm, but for those called cold, where nothing that is kept fits, as at first. Today's ways
make a buffer each time, and are to be compared with the cold rows where a page does a thing
once. The floor uploads into a buffer that is there already: whole, and in pieces of 4 MiB with an empty
submit after each. Its copy within memory is of as many bytes of linear memory. Uploads "in use"
are into a buffer that a command before them reads. The floor of both Python paths is `ndarray.__dlpack__()` alone; that of
packing and converting copies as many bytes within wasm memory. Elements that are packed are
float32 where nothing else is said; converting is that of float32 on its way to a GPU, without
the GPU. A file is opened from a server of this machine, in the same two cores. A handover gives a GPU tensor to a library, takes it back and gives up both. In JupyterLite
the time begins when a notebook is opened, in a new browser; its floor is the first result of NumPy,
and the size is all that is loaded. Compare within this run only."""


def report(result: dict) -> str:
    machine = ", ".join(f"{key}: {value}" for key, value in result["machine"].items())
    lost = [f"The GPU process ended: {row}" for row in result["failed"]]
    return "\n".join([INTRODUCTION, "", machine, *lost, *tables(result["rows"]), ""])


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure dlpack-web in Chromium.")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few rounds and sizes, no first step, no lite: does it work?",
    )
    parser.add_argument("--only", metavar="PATH", help="one path, such as upload")
    options = parser.parse_args()
    try:
        result = measure(options.quick, options.only)
    except BrowserMissingError as error:
        print(error)
        return 2
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    text = report(result)
    (BUILD / "bench.md").write_text(text)
    if not options.quick and options.only is None:
        results = ROOT / "tests" / "bench"
        (results / "RESULTS.md").write_text(text)
        summarise(result["rows"], results / "results.svg")
    print(text)
    print("build/bench.json, build/bench.md")
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
