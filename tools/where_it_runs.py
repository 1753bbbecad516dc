"""The table of RUNTIMES.md: each suite asks its environment for FACTS, and fails if the page has
other values."""

from __future__ import annotations

import json
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "web" / "RUNTIMES.md"
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
COLUMNS = ("cpu", "webgpu", "float16", "timestamps", "waits", "canvases")
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


def check(row: str, version: str, told: object) -> None:
    """Compares the result of FACTS with the row of the page."""
    facts = json.loads(str(told))
    cells = [YES if facts[name] else NO for name in COLUMNS]
    said = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith(f"| {ROWS[row]} |")
    ]
    assert [each[2:] for each in said] == [cells], (
        "web/RUNTIMES.md differs from what is found: write the row "
        f"| {' | '.join([ROWS[row], version, *cells])} |"
    )
