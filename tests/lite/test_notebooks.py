"""Every notebook of the JupyterLite site: all cells run, and say what they should."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

import pytest
from browser import open_page
from notebooks import LITE, failed, run_notebook, text_of
from playwright.sync_api import Browser
from serve import Server

# What each code cell says, whole; of one without a result "".
EXPECTED = {
    "tour": [
        "True",
        r"Tensor\(shape=\(2, 3\), dtype='float32', device='cpu'\)",
        r"array\(\[\[ 0.,  1.,  2.\],\s+\[ 3., 40.,  5.\]\], dtype=float32\)",
        r"\(\(2, 3\), 'webgpu:0', 32\)",
        "",
        r"array\(\[\[.*1.6e\+03, 2.5e\+01\]\], dtype=float32\)",
        "True",
        r"\(True, True, True\)",
    ],
    "images": [
        "",
        r"\(600, 512, 3\)",
        r"Tensor\(shape=\(600, 512, 3\), dtype='uint8', device='cpu', read_only\)",
        r"Tensor\(shape=\(600, 512, 4\), dtype='float32', device='webgpu:0'\)",
        r"\(\(600, 512, 4\), \(600, 512\)\)",
        r"<Figure size 900x360 with 3 Axes>",
        "True",
    ],
    "by_hand": [
        "",
        "",
        "",
        r"array\(\[\[ 0.,  1.,  4.\],\s+\[ 9., 16., 25.\]\], dtype=float32\)",
    ],
    "onnx": [
        r"'1\.30\.0'",
        r"\(\['pixels'\], \['logits'\]\)",
        r"\(200, 64\)",
        r"Tensor\(shape=\(200, 10\), dtype='float32', device='webgpu:0'\)",
        r"\[\d(, \d){19}\]",
        r"\(True, True\)",
    ],
}


def test_every_notebook_is_expected() -> None:
    assert {path.stem for path in (LITE / "files").glob("*.ipynb")} == set(EXPECTED)


def test_index_leads_there(browser: Browser, site: Server) -> None:
    with open_page(browser, site.url) as (page, _):
        page.goto(site.url)
        page.click("text=JupyterLite")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)


@pytest.mark.parametrize("name", EXPECTED)
def test_notebook(name: str, browser: Browser, lite: str) -> None:
    with open_page(browser, urljoin(lite, "/")) as (page, watch):
        # Asked at the root of the host, wherever JupyterLite is; nobody needs the answer.
        page.route("**/api/service-worker-heartbeat", lambda it: it.fulfill(status=204))
        cells = run_notebook(page, lite, f"{name}.ipynb")
        check(name, cells)
        assert watch.complaints() == []


def check(name: str, cells: list[dict[str, Any]]) -> None:
    """Raise unless the code cells of a notebook say what they should."""
    assert failed(cells) == []
    told = [text_of(cell) for cell in cells]
    for text, expected in zip(told, EXPECTED[name], strict=True):
        assert re.fullmatch(expected, text, re.DOTALL), (text, expected)
    kinds = {
        kind
        for cell in cells
        for output in cell["outputs"]
        for kind in output.get("data", {})
    }
    if name == "images":
        assert {"image/png", "text/html"} <= kinds  # plots, and shown tensors
