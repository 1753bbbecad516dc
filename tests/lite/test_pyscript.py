"""The pages of PyScript: on the main thread and in a worker."""

from __future__ import annotations

import pytest
from browser import await_result, open_page
from playwright.sync_api import Browser
from serve import Server

PAGES = {"pyscript": "on the main thread", "pyscript_worker": "in a worker"}
PHONE = {"width": 390, "height": 844}
STEPS = [
    "JavaScript writes into the NumPy array",
    "a WGSL kernel squares it on the GPU",
    "every tensor was released",
]


@pytest.mark.parametrize(("name", "where"), PAGES.items())
def test_page_runs(name: str, where: str, browser: Browser, site: Server) -> None:
    with open_page(browser, site.url, viewport=PHONE) as (page, watch):
        page.goto(f"{site.url}{name}.eval.html", wait_until="commit")
        waits = page.locator("#steps .waiting")
        waits.wait_for()
        mark = "(li) => getComputedStyle(li, '::before').content"
        assert waits.evaluate(mark) == '"…"'  # no tick before something is done
        result = await_result(page)
        assert waits.count() == 0
        assert list(result["checks"]) == [*STEPS, f"this ran {where}"]
        assert result["ok"]
        assert page.locator("#steps li:not(.broken)").count() == 4
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
        assert watch.complaints() == []


def test_page_says_what_is_missing(browser: Browser, site: Server) -> None:
    with open_page(browser, site.url) as (page, watch):
        page.add_init_script("delete Navigator.prototype.gpu")
        page.goto(f"{site.url}pyscript.eval.html")
        assert not await_result(page)["ok"]
        assert "BufferError" in page.inner_text("#steps .broken")
        assert watch.complaints() == []
