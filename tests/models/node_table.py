"""Run the node tests of the `onnx` package natively and in a page, and write what became of them:
tests/interop/ONNX.md, and of a sample (nodes.json) how each ended.

Usage: build/venv/bin/python tests/models/node_table.py [--seconds 300]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "web")]

import node_native
import node_page
from browser import Where, open_browser, open_page
from reasons import reason
from serve import Server

FOLDER = ROOT / "build" / "nodes"
PYTHON = ROOT / "build" / "libs" / "bin" / "python"
TABLE = ROOT / "tests" / "interop" / "ONNX.md"
SAMPLE = Path(__file__).resolve().parent / "nodes.json"
SAMPLED = 150
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
}
HEADS = {
    "native": "natively",
    "cpu": "in the page, CPU",
    "webgpu": "in the page, WebGPU",
}

# name -> (kind, detail)
Outcomes = dict[str, list[str]]


def index() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((FOLDER / "index.json").read_text())
    return found


def natively(names: Iterable[str]) -> Outcomes:
    return dict(node_native.run(PYTHON, FOLDER, "CPUExecutionProvider", names))


def in_page(names: list[str], seconds: float) -> tuple[dict[str, Outcomes], Where, str]:
    """What became of them by provider, where that was, and the version of onnxruntime-web."""
    mounts = {"/tests/": ROOT / "tests", "/nodes/": FOLDER}
    with Server(mounts=mounts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with open_browser() as browser:
                found: dict[str, Outcomes] = {}
                end = time.monotonic() + seconds
                for key, provider in PROVIDERS.items():
                    # What the first leaves of its half is the second's.
                    share = (end - time.monotonic()) / (len(PROVIDERS) - len(found))
                    with open_page(browser, server.url) as (page, _):
                        some = node_page.run(page, server.url, provider, names, share)
                        found[key] = dict(some)
                        where = Where.of(page)
        finally:
            server.shutdown()
    library = ROOT / "build" / "libraries" / "node_modules" / "onnxruntime-web"
    version = json.loads((library / "package.json").read_text())["version"]
    return found, where, version


def sampled(cases: list[dict[str, str]]) -> list[str]:
    """So many names, of all operators alike: every n-th in the order of operators."""
    order = sorted(cases, key=lambda case: (case["operator"], case["name"]))
    step = len(order) / SAMPLED
    return [order[int(i * step)]["name"] for i in range(SAMPLED)]


def table(found: dict[str, Outcomes], heads: dict[str, str], notes: str) -> str:
    """ONNX.md."""
    counts = {
        home: Counter(reason(*outcome) for outcome in outcomes.values())
        for home, outcomes in found.items()
    }
    total = sum(counts.values(), Counter())
    reasons = [text for text, _ in total.most_common() if text]
    lines = [
        "# The node tests of ONNX",
        "",
        notes,
        "",
        "| | " + " | ".join(heads[home] for home in found) + " |",
        "|---|" + "---|" * len(found),
        row("tests run", [len(outcomes) for outcomes in found.values()]),
        row("**passed**", [f"**{count['']}**" for count in counts.values()]),
        *(row(text, [count[text] for count in counts.values()]) for text in reasons),
    ]
    native = found["native"]
    for home in PROVIDERS:
        lines += ["", f"## Natively, but not {heads[home]}", ""]
        lines += differences(native, found[home])
    return "\n".join(lines) + "\n"


def row(head: str, cells: Iterable[object]) -> str:
    return f"| {head} | " + " | ".join(str(cell or "-") for cell in cells) + " |"


def differences(native: Outcomes, page: Outcomes) -> list[str]:
    """What passes natively and not there, by reason: the operators, and how many tests of each."""
    operators = {case["name"]: case["operator"] for case in index()}
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    both = 0
    for name, outcome in page.items():
        if native[name][0] != "passed":
            continue
        if outcome[0] == "passed":
            both += 1
            continue
        groups[reason(*outcome)][operators[name]] += 1
    missing = sum(sum(group.values()) for group in groups.values())
    lines = [f"{both} of the {both + missing} that pass natively pass there, too."]
    for text, group in sorted(groups.items(), key=lambda it: -sum(it[1].values())):
        named = ", ".join(
            f"{name} {count}" if count > 1 else name
            for name, count in sorted(group.items())
        )
        lines += ["", f"- **{text}** ({sum(group.values())}): {named}"]
    return lines


def versions() -> dict[str, str]:
    """Of onnx and onnxruntime, natively."""
    code = "import json, onnx, onnxruntime as o; print(json.dumps([onnx.__version__, o.__version__]))"
    said = subprocess.run(
        [str(PYTHON), "-c", code], capture_output=True, text=True, check=True
    )
    return dict(zip(("onnx", "onnxruntime"), json.loads(said.stdout), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description="The node tests of ONNX.")
    parser.add_argument(
        "--seconds", type=float, default=300, help="for the page, of both providers"
    )
    seconds = parser.parse_args().seconds
    cases = index()
    sample = sampled(cases)
    names = [case["name"] for case in cases]
    # The sample first; then in an order of chance, so that what time suffices for is of all kinds.
    names.sort(key=lambda name: (name not in sample, zlib.crc32(name.encode())))
    found = {"native": natively(names)}
    pages, where, web = in_page(names, seconds)
    found |= pages
    known = versions()
    notes = (
        "Written by `make tables WHAT=onnx`. The tests are those that the `onnx` package "
        f"({known['onnx']}) has for single operators, {len(names)} in all, each with its "
        "own inputs, expected outputs and tolerances; they run one by one, natively by "
        f"onnxruntime {known['onnxruntime']} on the CPU, in the page by "
        f"`dlpack_web.onnxruntime` over onnxruntime-web {web} ({where}). Of WebGPU "
        "onnxruntime runs what it has a kernel for, and the rest on the CPU."
    )
    TABLE.write_text(table(found, HEADS, notes))
    kept = {
        name: {
            home: reason(*outcomes[name]) or "passed"
            for home, outcomes in found.items()
            if name in outcomes
        }
        for name in sample
    }
    lines = (f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in kept)
    SAMPLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    (ROOT / "build" / "nodes.json").write_text(json.dumps(found, indent=0) + "\n")
    for home, outcomes in found.items():
        passed = sum(outcome[0] == "passed" for outcome in outcomes.values())
        print(f"{HEADS[home]}: {passed} of {len(outcomes)} passed")
    print(f"{TABLE.relative_to(ROOT)}, {SAMPLE.relative_to(ROOT)}, build/nodes.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
