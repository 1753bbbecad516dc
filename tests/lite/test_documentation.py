"""The notebook of each page of the documentation: all of its cells run in JupyterLite."""

from __future__ import annotations

import os
import re
from urllib.parse import urljoin

import pytest
from browser import open_page
from notebooks import LITE, failed, run_notebook, text_of
from playwright.sync_api import Browser, expect
from serve import SITE, Server

BOOKS = sorted(
    path.relative_to(LITE / "files").as_posix()
    for path in (LITE / "files" / "docs").rglob("*.ipynb")
)
# Minutes; tests/docs runs the same blocks in their pages.
SOME = BOOKS if "WHOLE" in os.environ else BOOKS[::18]


def test_each_page_with_blocks_has_a_notebook() -> None:
    pages = {
        path.relative_to(SITE).with_suffix(".ipynb").as_posix()
        for path in (SITE / "docs").rglob("*.html")
        if 'class="block"' in path.read_text("utf-8")
    }
    assert len(pages) > 30
    assert pages == set(BOOKS)


def test_a_block_opens_in_jupyterlite(browser: Browser, site: Server) -> None:
    with open_page(browser, site.url) as (page, _):
        page.goto(f"{site.url}docs/tutorials/first-tensor.html")
        page.get_by_role("link", name="Open in JupyterLite: block 3").click()
        cells = page.locator(".jp-Notebook")
        expect(cells).to_contain_text("np.asarray(t)[0, 0] = 100")


@pytest.mark.parametrize("name", SOME)
def test_notebook_runs(name: str, browser: Browser, lite: str) -> None:
    with open_page(browser, urljoin(lite, "/")) as (page, watch):
        # Asked at the root of the host, wherever JupyterLite is; nobody needs the answer.
        page.route("**/api/service-worker-heartbeat", lambda it: it.fulfill(status=204))
        cells = run_notebook(page, lite, name)
        assert failed(cells) == []
        for cell in cells:
            if "except Exception as error:" in cell["source"]:  # it has to raise
                assert re.match(r"\w+: .", text_of(cell)), cell["source"]
        assert watch.external == []
