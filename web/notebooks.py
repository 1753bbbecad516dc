"""Run the notebooks of the JupyterLite site, as its own "Run All Cells" does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from serve import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

LITE = ROOT / "build" / "lite" / "site"
TIMEOUT_S = 600

RUN_ALL = """async (seconds) => {
  const { commands, shell } = globalThis.jupyterapp;
  const widget = shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;
  const late = new Promise((_, reject) =>
    setTimeout(() => reject(new Error("the cells take too long")), 1000 * seconds));
  await Promise.race([commands.execute("notebook:run-all-cells"), late]);
  await new Promise((resolve) => setTimeout(resolve, 300)); // for the last outputs
  const { cells } = widget.context.model.toJSON();
  return cells.filter(({ cell_type }) => cell_type === "code");
}"""


def run_notebook(page: Page, url: str, name: str) -> list[dict[str, Any]]:
    """Open a notebook and run it; returns its code cells with their outputs."""
    page.goto(f"{url}notebooks/index.html?path={name}")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_function("() => Boolean(globalThis.jupyterapp)")
    cells: list[dict[str, Any]] = page.evaluate(RUN_ALL, TIMEOUT_S)
    return cells


def text_of(cell: dict[str, Any]) -> str:
    """A cell's printed output and result, as plain text; errors as NAME: message."""
    parts = []
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
        else:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            parts.append(text if isinstance(text, str) else "".join(text))
    return "\n".join(parts).strip()


def failed(cells: list[dict[str, Any]]) -> list[str]:
    """Problems: errors, and cells that did not run."""
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    if "error" in kinds:
        texts = [text_of(cell) for cell in cells]
        return [text for text in texts if ": " in text]
    return [cell["source"] for cell in cells if cell["execution_count"] is None]
