"""The ways of web/docs/howto/install.md that are pages, each copied into an empty folder. Those of
desktop Python are in tests/desktop/test_install.py; tests/docs runs the notebook's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import open_page
from playwright.sync_api import Browser
from projects import ROOT, SITE, run
from sites import single_page_site

PAGE = (ROOT / "web" / "docs" / "howto" / "install.md").read_text("utf-8")
pytestmark = pytest.mark.skipif(
    "CLONE" not in PAGE, reason="released: needs registries"
)


def blocks(heading: str) -> list[tuple[str, str]]:
    """Language and text of the listings below a heading."""
    (section,) = re.findall(rf"(?ms)^## {heading}\n(.*?)(?=^## |\Z)", PAGE)
    return re.findall(r"(?ms)^```(\w+)\n(.*?)^```", section)


def copied(heading: str, folder: Path, without: str) -> None:
    """Runs the commands that do not need a registry, and writes the files."""
    for language, text in blocks(heading):
        if language == "sh":
            for line in text.replace("CLONE", str(ROOT)).splitlines():
                if not re.match(without, line):
                    offline = "npm install --offline --no-audit --no-fund"
                    run("bash", "-c", line.replace("npm install", offline), at=folder)
        else:
            (folder / {"html": "index.html", "js": "main.js"}[language]).write_text(
                text
            )


def says(browser: Browser, root: Path) -> str:
    with single_page_site(root) as url, open_page(browser, url) as (page, watch):
        page.goto(f"{url}index.html")
        page.wait_for_selector("#out:not(:has-text('…'))")
        told = [x for x in watch.complaints() if "favicon" not in x]
        assert told == []
        return page.inner_text("#out")


def test_a_page_with_pyodide(tmp_path: Path, browser: Browser) -> None:
    assert (SITE / "pyodide").is_dir()  # the result of the command that is left out
    copied("A page with Pyodide", tmp_path, without="make")
    assert says(browser, tmp_path) == "[[42.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"


def test_vite(tmp_path: Path, project: Path, browser: Browser) -> None:
    copied("Vite and other bundlers", tmp_path, without="npm install vite|npx vite")
    vite = project / "node_modules" / "vite"
    (tmp_path / "node_modules" / "vite").symlink_to(vite)
    run("node", str(vite / "bin" / "vite.js"), "build", "--base=./", at=tmp_path)
    assert says(browser, tmp_path / "dist") == "1 4 2 5 3 6"


def test_a_plain_page(tmp_path: Path, browser: Browser) -> None:
    copied("A plain page", tmp_path, without="nothing")
    assert says(browser, tmp_path) == "float32: 1 2 3"


def test_the_page_names_all_five_ways() -> None:
    headings = re.findall(r"(?m)^## (.+)$", PAGE)
    linked = re.findall(r"(?m)^\| .+ \| \[(.+)\]\(#", PAGE)
    assert headings == linked
    assert len(headings) == 5
