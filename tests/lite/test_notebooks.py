"""Every notebook of the JupyterLite site: all cells run, and say what they should."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "web"))

from browser import open_browser, open_page
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


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(LITE, strict=False) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser([]) as running:
        yield running


def test_every_notebook_is_expected() -> None:
    assert {path.stem for path in (LITE / "files").glob("*.ipynb")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_notebook(name: str, browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        cells = run_notebook(page, server.url, f"{name}.ipynb")
        assert failed(cells) == []
        told = [text_of(cell) for cell in cells]
        for text, expected in zip(told, EXPECTED[name], strict=True):
            assert re.fullmatch(expected, text, re.DOTALL), (text, expected)
        assert watch.complaints() == []
        assert watch.external == []
        kinds = {
            kind
            for cell in cells
            for output in cell["outputs"]
            for kind in output.get("data", {})
        }
        if name == "images":
            assert {"image/png", "text/html"} <= kinds  # plots, and shown tensors
