"""Every notebook of the JupyterLite site: all cells run, and say what they should."""

from __future__ import annotations

import outputs
import pytest
from browser import open_page
from notebooks import LITE, run_notebook
from playwright.sync_api import Browser
from serve import Server


def test_every_notebook_is_expected() -> None:
    assert {path.stem for path in (LITE / "files").glob("*.ipynb")} == set(
        outputs.EXPECTED
    )


@pytest.mark.parametrize("name", outputs.EXPECTED)
def test_notebook(name: str, browser: Browser, lite: Server) -> None:
    with open_page(browser, lite.url) as (page, watch):
        outputs.check(name, run_notebook(page, lite.url, f"{name}.ipynb"))
        assert watch.complaints() == []
