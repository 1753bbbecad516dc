"""The table of RUNTIMES.md: each suite asks its environment for FACTS, stores them in
build/runtimes-table, and fails if the page has other values.

As a script: writes the table from the stored facts, and keeps other rows. Counts of
cases are of whole suites, rounded, and no test checks them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "web" / "RUNTIMES.md"
KEPT = ROOT / "build" / "runtimes-table"
ROWS = {
    "chromium": "Chromium",
    "firefox": "Firefox",
    "webkitgtk": "WebKitGTK",
    "deno-lavapipe": "Deno, on lavapipe",
    "deno-swiftshader": "Deno, on SwiftShader",
    "node-swiftshader": "Node 24 with Dawn (npm's `webgpu`)",
    "node-26-swiftshader": "Node 26 with Dawn (npm's `webgpu`)",
    "bun-swiftshader": "Bun with Dawn (npm's `bun-webgpu`)",
    "cpython": "CPython with wgpu-py, on lavapipe",
    "cpython-dawn": "CPython with wgpudawn (Dawn), on SwiftShader",
}
COLUMNS = {
    "cpu": "CPU tensors",
    "webgpu": "WebGPU",
    "float16": "float16 kernels",
    "timestamps": "timestamps",
    "waits": "Python waits",
    "canvases": "canvases",
}
YES, NO = "yes", "\u2013"
# The facts of a row, from Python itself; `facts` is JSON.
FACTS = """
import json
import numpy as np
import dlpack_web as dlw

array = np.zeros(3, np.float32)
with dlw.from_dlpack(array) as tensor:
    np.asarray(tensor)[1] = 7
found = dlw.features()
webgpu, canvases = found["webgpu"]["available"], False
if found["browser"] and webgpu:
    import js

    canvas = getattr(js, "OffscreenCanvas", None)
    context = canvas and canvas.new(1, 1).getContext("2d")
    canvases = hasattr(context, "drawImage")
facts = json.dumps(
    {
        "cpu": bool(array[1] == 7),
        "webgpu": webgpu,
        "float16": bool(webgpu and found["shaderF16"]),
        "timestamps": bool(webgpu and found["timestampQuery"]),
        "waits": found["canBlock"],
        "canvases": canvases,
    }
)
facts
"""

ASKED = pytest.StashKey[str]()


def check(row: str, version: str, told: object) -> None:
    """Stores the result of FACTS, and raises if the page has other values."""
    facts = json.loads(str(told))
    keep(row, {"version": version, "facts": facts})
    said = rows(PAGE.read_text("utf-8")).get(row)
    assert said, (
        f"web/RUNTIMES.md has no row {ROWS[row]!r}: add it with `make tables WHAT=runtimes`"
    )
    shown = dict(zip(COLUMNS, said[2:], strict=False))
    found = {name: YES if facts[name] else NO for name in COLUMNS}
    assert {name: shown[name] for name in COLUMNS} == found, (
        f"web/RUNTIMES.md differs from the results for {ROWS[row]!r}: update it with "
        "`make tables WHAT=runtimes`"
    )


def keep(row: str, facts: dict[str, Any]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    file = KEPT / f"{row}.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(before | facts, indent=2) + "\n")


def keep_counts(row: str, outcomes: Iterable[str]) -> None:
    """The numbers of passed and skipped cases of a whole suite."""
    told = list(outcomes)
    keep(row, {"passed": told.count("passed"), "skipped": told.count("skipped")})


def is_whole(reporter: pytest.TerminalReporter) -> bool:
    """Whether pytest ran its whole folder and passed."""
    bad = any(reporter.stats.get(kind) for kind in ("deselected", "failed", "error"))
    whole = all("::" not in arg for arg in reporter.config.args)
    return whole and not bad and bool(reporter.stats.get("passed"))


# --- the table ------------------------------------------------------------------------------


def rows(text: str) -> dict[str, list[str]]:
    """The cells of the table, by row."""
    names = {title: row for row, title in ROWS.items()}
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] in names:
            found[names[cells[0]]] = cells
    return found


def line(row: str, before: list[str]) -> str:
    file = KEPT / f"{row}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    cells = before or [ROWS[row], *[NO] * (len(COLUMNS) + 2)]
    if "facts" in kept:
        facts = [YES if kept["facts"][name] else NO for name in COLUMNS]
        cells = [ROWS[row], kept["version"], *facts, cells[-1]]
    if "passed" in kept:
        cells[-1] = f"{about(kept['passed'])} / {about(kept['skipped'])}"
    return f"| {' | '.join(cells)} |\n"


def about(count: int) -> str:
    """A count with two significant digits: 1234 is 1200."""
    step = 10 ** max(len(str(count)) - 2, 0)
    return str(count // step * step)


def with_table(text: str) -> str:
    before = rows(text)
    heads = ["where", "tested with", *COLUMNS.values(), "cases passed / skipped"]
    table = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    table += "".join(line(row, before.get(row, [])) for row in ROWS)
    return re.sub(r"(?:^\|.*\n)+", lambda _: table, text, count=1, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
