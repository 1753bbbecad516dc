"""From opening a notebook in JupyterLite to the first result of a cell, and to the first
result of the GPU, served by web/serve.py, each time in a browser of its own.

`make bench WHAT=lite`. Usage: python tests/lite/timing.py [RUNS]
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "web"))

from browser import open_browser, open_page
from serve import Handler, Server

FIRST = "import numpy\nprint(numpy.ones(3).sum())"
GPU = """%pip install dlpack-web
import numpy as np
import dlpack_web as dlw
device = await dlw.webgpu.request_device()
x = dlw.from_dlpack(np.arange(4, dtype="f4"), device=device)
double = dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
  x[id.x] *= 2;
}''')
double(x)
print(await x.to_host())"""
SAYS = ["3.0", "[0. 2. 4. 6.]"]

# Milliseconds since the page was opened, when each text is an output of its cell.
TIMES = """async (says) => {
  const wait = () => new Promise((resolve) => setTimeout(resolve, 10));
  const end = performance.now() + 120000;
  const times = [];
  while (times.length < says.length) {
    const outputs = [...document.querySelectorAll(".jp-OutputArea-output")];
    const last = outputs.map((each) => each.textContent).join("");
    if (last.includes("Error")) throw new Error(last);
    if (last.includes(says[times.length])) times.push(performance.now());
    if (performance.now() > end) throw new Error("no result within two minutes");
    await wait();
  }
  return times;
}"""
# Runs all cells of JupyterLite as soon as it can.
RUN_ALL = """async () => {
  const wait = () => new Promise((resolve) => setTimeout(resolve, 10));
  while (!globalThis.jupyterapp?.shell.currentWidget?.context) await wait();
  const { commands, shell } = globalThis.jupyterapp;
  await shell.currentWidget.context.ready;
  await shell.currentWidget.sessionContext.ready;
  commands.execute("notebook:run-all-cells");
}"""


LOCK = threading.Lock()


class Counting(Handler):
    """Counts what it sends; JupyterLite's tour is the notebook of this measurement."""

    sent = 0
    book = Path()

    def translate_path(self, path: str) -> str:
        tour = path.split("?")[0].endswith("/files/tour.ipynb")
        return str(Counting.book) if tour else super().translate_path(path)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with LOCK:
            Counting.sent += Path(source.name).stat().st_size
        shutil.copyfileobj(source, outputfile)


def book_of(cells: list[str]) -> dict[str, object]:
    kernel = {"display_name": "Python", "language": "python", "name": "python"}
    made = [
        {"cell_type": "code", "source": source, "id": f"cell{i}", "metadata": {}}
        | {"outputs": [], "execution_count": None}
        for i, source in enumerate(cells)
    ]
    book = {"cells": made, "metadata": {"kernelspec": kernel}}
    return book | {"nbformat": 4, "nbformat_minor": 5}


def measure(runs: int) -> list[tuple[float, float, float]]:
    """Seconds to the first result and to that of the GPU, and megabytes, of each run."""
    Counting.book = ROOT / "build" / "lite-timing.ipynb"
    Counting.book.write_text(json.dumps(book_of([FIRST, GPU])))
    found = []
    with Server(handler=Counting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"{server.url}jupyterlite/notebooks/index.html?path=tour.ipynb"
        for run in range(runs):
            with open_browser() as browser, open_page(browser, server.url) as (page, _):
                Counting.sent = 0
                page.wait_for_timeout(1500)  # a browser that has just started is busy
                page.goto(address, wait_until="commit")
                page.evaluate(RUN_ALL)
                first, gpu = (ms / 1000 for ms in page.evaluate(TIMES, SAYS))
            found.append((first, gpu, Counting.sent / 1e6))
            print(f"  JupyterLite, {run + 1} of {runs}: {found[-1]}", flush=True)
        server.shutdown()
    return found


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
