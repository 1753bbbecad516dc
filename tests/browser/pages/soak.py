"""The landing page for minutes on end: what it holds has to stay as it is.

Every program of the gallery runs in turn, the sliders move and the source changes. Memory is
looked at after each round, with the garbage collected: JavaScript's, and that of the
processes that draw the page and run the GPU (which have Python's and the buffers).

Usage: python tests/browser/pages/soak.py [--minutes 10]
"""

from __future__ import annotations

import argparse
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "web")]

from browser import open_browser, open_page, where_it_should_be
from playwright.sync_api import CDPSession, Page
from serve import Server

MB = 2**20
EACH_MS = 4000  # a program
START_MS = 120_000
WARM_ROUNDS = 2  # compilers, fonts and pools fill up
# What comes and goes between two looks. A leak of one frame's pixels (300 KiB) in a hundred
# frames would be above it in ten minutes.
MAY_GROW = {"JavaScript": 4 * MB, "page": 24 * MB, "GPU": 24 * MB}


@dataclass(frozen=True)
class Look:
    seconds: float
    frames: int
    held: dict[str, int]  # bytes

    def __str__(self) -> str:
        held = "  ".join(f"{k} {v / MB:7.1f} MB" for k, v in self.held.items())
        return f"{self.seconds:5.0f} s  {self.frames:6d} frames  {held}"


def resident(pid: int) -> int:
    """Bytes of memory that a process alone has, as Linux counts them."""
    fields = dict(
        line.split(":", 1)
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    )
    return 1024 * sum(int(fields[k].split()[0]) for k in ("Private_Dirty", "Pss_Shmem"))


def processes(root: CDPSession) -> dict[str, int]:
    """The pid of the GPU's process, and of the page's: the renderer that worked most."""
    listed = root.send("SystemInfo.getProcessInfo")["processInfo"]
    pages = [p for p in listed if p["type"] == "renderer"]
    return {
        "page": max(pages, key=lambda p: p["cpuTime"])["id"],
        "GPU": next(p["id"] for p in listed if p["type"] == "GPU"),
    }


def one_round(page: Page) -> None:
    for button in page.locator("#gallery button").all():
        before = page.evaluate("live.shown()")
        button.click()
        page.wait_for_timeout(EACH_MS)
        for slider in page.locator("#sliders input[type=range]").all():
            slider.press("ArrowRight")
        if page.evaluate("live.shown()") == before:
            raise SystemExit(f"no frames of {button.inner_text()}")
    for size in ("medium", "small"):
        page.select_option("#size", size)
        page.wait_for_timeout(EACH_MS)


def look(page: Page, cdp: CDPSession, pids: dict[str, int], start: float) -> Look:
    for _ in range(2):  # finalizers run after the first
        cdp.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(200)
    usage = cdp.send("Runtime.getHeapUsage")
    held = {"JavaScript": int(usage["usedSize"])}
    held |= {name: resident(pid) for name, pid in pids.items()}
    return Look(monotonic() - start, page.evaluate("live.shown()"), held)


def soak(minutes: float) -> list[Look]:
    looks = []
    with Server() as server, open_browser() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with open_page(browser, server.url) as (page, watch):
            page.goto(f"{server.url}live.html")
            print(where_it_should_be(page), flush=True)
            page.wait_for_selector("#canvas[data-by=python]", timeout=START_MS)
            cdp = page.context.new_cdp_session(page)
            pids = processes(browser.new_browser_cdp_session())
            start = monotonic()
            while monotonic() - start < minutes * 60 or len(looks) < WARM_ROUNDS + 3:
                one_round(page)
                looks.append(look(page, cdp, pids, start))
                print(looks[-1], flush=True)
            if watch.complaints():
                raise SystemExit("\n".join(watch.complaints()))
    return looks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10)
    looks = soak(parser.parse_args().minutes)[WARM_ROUNDS:]
    third = max(1, len(looks) // 3)
    grown = {
        name: min(each.held[name] for each in looks[-third:])
        - min(each.held[name] for each in looks[:third])
        for name in MAY_GROW
    }
    print("  ".join(f"{name} {by / MB:+.1f} MB" for name, by in grown.items()))
    if too_much := [name for name, by in grown.items() if by > MAY_GROW[name]]:
        raise SystemExit(f"memory grew: {', '.join(too_much)}")


if __name__ == "__main__":
    main()
