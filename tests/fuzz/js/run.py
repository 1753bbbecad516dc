#!/usr/bin/env python3
"""run.py --seconds N [--seed N]: tries to break the JavaScript library and WebGPU, in Chromium.

Four parts share the time: faults at every call of WebGPU, random sequences of operations of both
languages and of two copies of the library against a model, calls of kernels that come again against
fresh kernels, and cycles after which all counts are what they were. What fails is printed with the
command that does it again.
"""

import argparse
import json
import random
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "web"))

from browser import PATIENT_S, open_browser, open_page, where_it_should_be
from serve import SITE, Server

SHARES = {"faults": 0.25, "model": 0.5, "calls": 0.15, "cycles": 0.1}
SLICE = 20.0  # seconds that a page runs before it is asked what it found
CYCLES = 100_000  # as many as time allows
# The library once more is below /js-source/: by other URLs it is another copy.
MOUNTS = {"/tests/": ROOT / "tests", "/js-source/": ROOT / "js"}
COMMAND = "build/venv/bin/python tests/fuzz/js/run.py"


class Fuzz:
    """A page with Pyodide and the library in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        where_it_should_be(page)

    def start(self) -> None:
        wheel = json.loads((SITE / "wheel" / "wheel.json").read_text())["file"]
        options = {"pyodideDir": "/pyodide/", "wheel": f"/wheel/{wheel}"}
        self.page.evaluate("options => globalThis.fuzz.start(options)", options)

    def run(self, module: str, **options: object) -> dict[str, Any]:
        call = "([name, options]) => globalThis.fuzz.run(name, options)"
        return self.page.evaluate(call, [module, options])


@contextmanager
def open_fuzz(browser: Any, server: Server) -> Iterator[Fuzz]:
    with open_page(browser, server.url) as (page, _):
        page.goto(f"{server.url}tests/fuzz/js/page.html")
        fuzz = Fuzz(page)
        fuzz.start()
        yield fuzz


def told(part: str, problem: str, again: dict[str, object]) -> str:
    only = shlex.quote(json.dumps(again))
    return f"{problem}\nagain: {COMMAND} --part {part} --only {only}"


def faults(fuzz: Fuzz, seed: int, seconds: float, only: Any) -> list[str]:
    end, done, found = time.monotonic() + seconds, 0, []
    while True:
        left = max(0.0, min(SLICE, end - time.monotonic()))
        result = fuzz.run("faults", seed=seed, skip=done, seconds=left, only=only)
        if "problem" in result:
            return [*found, told("faults", result["problem"], {"seed": seed})]
        done += result["trials"]
        for each in result["found"]:
            plan = each["plan"]
            again = {key: plan[key] for key in ("name", "at", "kind")}
            found.append(told("faults", f"{plan}: {each['problem']}", again))
            print(found[-1], flush=True)
        if only or result["all"] or time.monotonic() >= end:
            all_of_them = "; these are all there are" if result["all"] else ""
            print(f"[fuzz-js] {done} faults{all_of_them}", flush=True)
            return found


def model(fuzz: Fuzz, seed: int, seconds: float, only: Any) -> list[str]:
    return _sequences("model", fuzz, seed, seconds, only)


def calls(fuzz: Fuzz, seed: int, seconds: float, only: Any) -> list[str]:
    return _sequences("calls", fuzz, seed, seconds, only)


def _sequences(
    part: str, fuzz: Fuzz, seed: int, seconds: float, only: Any
) -> list[str]:
    end, sequences, steps = time.monotonic() + seconds, 0, 0
    while True:
        left = max(0.0, min(SLICE, end - time.monotonic()))
        result = fuzz.run(part, seed=seed, first=sequences, seconds=left, only=only)
        if "problem" in result:
            problem = result["problem"]
            return [problem] if problem is not None else []
        sequences += result["sequences"]
        steps += result["steps"]
        if failed := result.get("failed"):
            return [_told_sequence(part, failed, seed)]
        if time.monotonic() >= end:
            of = f"{sequences} sequences of {steps} operations"
            print(f"[fuzz-js] {part}: {of}", flush=True)
            return []


def _told_sequence(part: str, failed: dict[str, Any], seed: int) -> str:
    names = [step[0] if isinstance(step, list) else step for step in failed["steps"]]
    problem = f"sequence {failed['number']} of seed {seed}: {failed['problem']}"
    if failed["again"]:
        return told(part, f"{problem}\n{names}", {"steps": failed["steps"]})
    again = f"{COMMAND} --part {part} --seed {seed}"
    return f"{problem}\nonly after those before it: {again}"


def cycles(fuzz: Fuzz, _seed: int, seconds: float, _only: Any) -> list[str]:
    result = fuzz.run("cycles", seconds=seconds, most=CYCLES)
    if "problem" in result:
        return [f"{result['problem']}\nagain: {COMMAND} --part cycles"]
    print(f"[fuzz-js] {result['cycles']} cycles", flush=True)
    return []


PARTS = {
    "faults": faults,
    "model": model,
    "calls": calls,
    "cycles": cycles,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--part", choices=[*PARTS])
    parser.add_argument("--only", type=json.loads)
    options = parser.parse_args()
    seed = random.randrange(2**31) if options.seed is None else options.seed
    print(f"[fuzz-js] seed {seed}", flush=True)
    end, found = time.monotonic() + options.seconds, []
    with (
        Server(mounts=MOUNTS) as server,
        open_browser(patient_s=PATIENT_S + options.seconds) as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with open_fuzz(browser, server) as fuzz:
            left = max(end - time.monotonic(), 0.0)
            for name in [options.part] if options.part else PARTS:
                share = 1.0 if options.part else SHARES[name]
                found += PARTS[name](fuzz, seed, share * left, options.only)
        server.shutdown()
    for each in found[:20]:
        print(each, "", sep="\n")
    if found:
        print(f"[fuzz-js] {len(found)} problems (seed {seed})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
