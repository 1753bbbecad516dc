"""Every notebook of the JupyterLite site: all cells run, and say what they say on the desktop."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urljoin

import outputs
import pytest
from browser import open_page
from notebooks import LITE, run_notebook
from playwright.sync_api import Browser
from serve import Server

sys.path.append(str(Path(__file__).parents[1] / "desktop"))
import notebook

NAMES = sorted(notebook.NOTEBOOKS)
# Each takes half a minute: `make test-all` runs all of them.
SOME = ("tour",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("notebooks")
    notebook.lay_out(made)
    return made


def test_every_notebook_is_there() -> None:
    assert {path.stem for path in (LITE / "files").glob("*.ipynb")} == {*NAMES}


def test_index_leads_there(browser: Browser, site: Server) -> None:
    with open_page(browser, site.url) as (page, _):
        page.goto(site.url)
        page.click("text=JupyterLite")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")


@pytest.mark.parametrize("name", NAMES if "WHOLE" in os.environ else SOME)
def test_notebook(name: str, browser: Browser, lite: str, folder: Path) -> None:
    natively = notebook.run(name, folder)
    with open_page(browser, urljoin(lite, "/")) as (page, watch):
        # Asked at the root of the host, wherever JupyterLite is; nobody needs the answer.
        page.route("**/api/service-worker-heartbeat", lambda it: it.fulfill(status=204))
        outputs.check(name, run_notebook(page, lite, f"{name}.ipynb"), natively)
        assert watch.complaints() == []
