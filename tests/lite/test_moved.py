"""Links to the notebook page that the site had lead to JupyterLite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import open_page
from playwright.sync_api import Browser
from serve import Server

PACK = """async ([text, count]) => {
  const part = text === null ? new Uint8Array(1 << 20) : text;
  const stream = new Blob(Array(count).fill(part)).stream();
  const packed = stream.pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}"""


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("", "tour.ipynb"),
        ("#by_hand", "by_hand.ipynb"),
        ("#nothing", "tour.ipynb"),
        ("#docs/tutorials/first-tensor:2", "docs/tutorials/first-tensor.ipynb"),
        ("#docs/../index:1", "tour.ipynb"),
    ],
)
def test_links_to_the_notebook_page_lead_to_jupyterlite(
    link: str, path: str, browser: Browser, site: Server
) -> None:
    with open_page(browser, site.url) as (page, _):
        there = f"{site.url}jupyterlite/lab/index.html?path={path}"
        with page.expect_request(there):
            page.goto(f"{site.url}notebook/{link}", wait_until="commit")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")


def test_links_that_contain_a_notebook_offer_it(browser: Browser, site: Server) -> None:
    with open_page(browser, site.url) as (page, watch):
        page.goto(f"{site.url}404.html")
        cells = [["t", "# Title"], ["c", "mine = 'ü 🙂'"]]
        text = json.dumps({"name": "mine.ipynb", "cells": cells})
        packed = page.evaluate(PACK, [text, 1])
        page.goto(f"{site.url}notebook/#nb={packed}")
        with page.expect_download() as download:
            page.click("text=mine.ipynb")
        written = json.loads(Path(download.value.path()).read_text())
        assert download.value.suggested_filename == "mine.ipynb"
        found = [(cell["cell_type"], cell["source"]) for cell in written["cells"]]
        assert found == [("markdown", "# Title"), ("code", "mine = 'ü 🙂'")]
        bomb = page.evaluate(PACK, [None, 64])
        for broken in (packed[:-30], f"{packed}AAAA", packed[:20] + "~", bomb):
            page.goto(f"{site.url}404.html")
            page.goto(f"{site.url}notebook/#nb={broken}")
            page.wait_for_selector("#broken:visible")
            assert page.locator("#shared").is_hidden()
        assert watch.complaints() == []
