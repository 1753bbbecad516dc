"""Run one page of the site in headless Chromium and record what it did.

Prints the steps with bytes, copies and times; writes build/<page>.json and
build/<page>.png. The exit status is 0 only if every value matched, no error was logged
and no request left this machine.

Usage: python web/demo.py [--page demo]; the page "lite" is the tour in JupyterLite.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from functools import partial
from pathlib import Path

from browser import BrowserMissingError, await_result, open_browser, open_page
from notebooks import LITE, failed, run_notebook
from serve import ROOT, SITE, Server

SETTLED_MS = 1000


def run_page(name: str, url: str, screenshot: Path) -> dict[str, object]:
    """Open the page, which runs automatically; its result and our own counts."""
    viewport = {"width": 1200, "height": 900}
    with (
        open_browser() as browser,
        open_page(browser, url, viewport=viewport) as (page, watch),
    ):
        # A reader's browser is running: its own start is not the page's time.
        page.goto("about:blank")
        page.wait_for_timeout(SETTLED_MS)
        page.goto(f"{url}{name}.html?auto")
        try:
            result = await_result(page)
        except TimeoutError as error:
            result = {"page": name, "ok": False, "error": str(error)}
        page.screenshot(path=screenshot, full_page=True)
    result["external_requests"] = len(watch.external)
    result["problems"] = watch.complaints()
    result["ok"] = bool(result["ok"]) and not watch.complaints()
    return result


def run_tour(url: str, screenshot: Path) -> dict[str, object]:
    """Run the tour in JupyterLite; a step for each cell."""
    viewport = {"width": 1200, "height": 1000}
    with (
        open_browser() as browser,
        open_page(browser, url, viewport=viewport) as (page, watch),
    ):
        started = time.perf_counter()
        cells = run_notebook(page, url, "tour.ipynb")
        seconds = time.perf_counter() - started
        page.screenshot(path=screenshot)
    problems = failed(cells) + watch.complaints()
    return {
        "page": "lite",
        "ok": not problems,
        "cells": len(cells),
        "seconds": seconds,
        "external_requests": len(watch.external),
        "problems": problems,
    }


def print_steps(result: dict[str, object]) -> None:
    rows = [("step", "bytes", "copies", "copied bytes", "ms")]
    rows += [
        (
            step["name"],
            f"{step['bytes']:,}",
            f"{step['copies']}",
            f"{step['copied_bytes']:,}",
            f"{step['ms']:.3f}",
        )
        for step in result["steps"]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, (name, *numbers) in enumerate(rows):
        cells = [name.ljust(widths[0])]
        cells += [n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True)]
        print("  ".join(cells))
        if index == 0:
            print("  ".join("-" * width for width in widths))


def print_verdict(result: dict[str, object]) -> None:
    if "max_abs_error" in result:
        print(f"\nlargest difference from NumPy: {result['max_abs_error']:.2e}")
        foreign = result["external_requests"]
        print(f"mapAsync: {result['map_async']}, external requests: {foreign}")
    broken = [name for name, held in result.get("checks", {}).items() if not held]
    for problem in [result.get("error"), *broken, *result["problems"]]:
        if problem:
            print(f"PROBLEM: {problem}")
    print("OK" if result["ok"] else "FAILED")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a page of the site.")
    parser.add_argument(
        "--page", default="demo", help="a page of the site, without .html"
    )
    name = parser.parse_args().page
    lite = name == "lite"
    if not lite and not (SITE / f"{name}.html").exists():
        pages = ", ".join(sorted(path.stem for path in SITE.glob("*.html"))) or "none"
        print(f"There is no page {name!r} in {SITE}; there are: {pages}.")
        return 2
    build = ROOT / "build"
    with Server(LITE if lite else SITE, strict=not lite) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            run = run_tour if lite else partial(run_page, name)
            result = run(server.url, build / f"{name}.png")
        except BrowserMissingError as error:
            print(error)
            return 2
        finally:
            server.shutdown()
    (build / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    if result.get("steps"):
        print_steps(result)
    if "fps" in result:
        print(
            f"{result['fps']:.1f} frames/s, {result['frames']} frames of "
            f"{result['frame_ms']:.0f} ms and {result['copies_per_frame']} copies each; the "
            f"first frame after {result['first_frame_ms'] / 1000:.1f} s, the first from "
            f"Python after {result['python_frame_ms'] / 1000:.1f} s"
        )
    if "cells" in result:
        seconds = f"{result['seconds']:.1f} s"
        print(f"{result['cells']} cells in {seconds}, including loading Python")
    print_verdict(result)
    print(f"build/{name}.json, build/{name}.png")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
