"""From opening the tour in JupyterLite to its first result of the GPU, and the same for
the notebook that does it by hand: alternating runs, each in a fresh browser profile.

Writes build/lite-timing.json. Usage: python tests/lite/timing.py [RUNS]
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "web"))

from browser import open_browser, open_page
from notebooks import LITE
from serve import Server

FIRST_RESULT = {"tour": 5, "by_hand": 3}  # the code cell whose output it is

# Milliseconds since the page was opened, when the cell has its output.
WAIT = """async (cell) => {
  while (!globalThis.jupyterapp) await new Promise((resolve) => setTimeout(resolve, 10));
  const { commands, shell } = globalThis.jupyterapp;
  while (!shell.currentWidget?.context) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const widget = shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;
  commands.execute("notebook:run-all-cells");
  const code = () => widget.content.widgets.filter(({ model }) => model.type === "code");
  const end = performance.now() + 120000;
  while (!code()[cell]?.model.outputs.length) {
    if (performance.now() > end) throw new Error("no result within two minutes");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const output = code()[cell].model.outputs.get(0).toJSON();
  if (output.output_type === "error") throw new Error(output.evalue);
  return performance.now();
}"""


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    times: dict[str, list[float]] = {name: [] for name in FIRST_RESULT}
    with Server(LITE, strict=False) as server, open_browser() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for run in range(runs):
            for name, cell in FIRST_RESULT.items():
                with open_page(browser, server.url) as (page, _):
                    page.goto(f"{server.url}notebooks/index.html?path={name}.ipynb")
                    times[name].append(page.evaluate(WAIT, cell) / 1000)
                print(f"  {run + 1}, {name}: {times[name][-1]:.2f} s", flush=True)
        server.shutdown()
    result = {}
    for name, seconds in times.items():
        low, median, high = statistics.quantiles(seconds, n=4)
        result[name] = {"median_s": median, "iqr_s": high - low, "n": len(seconds)}
    ratio = result["tour"]["median_s"] / result["by_hand"]["median_s"]
    result["ratio"] = ratio
    (ROOT / "build" / "lite-timing.json").write_text(
        json.dumps(result, indent=2) + "\n"
    )
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
