"""The pages of examples/, with the tarball of `make package` and a Pyodide beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from projects import ROOT, SITE, run
from sites import says, single_page_site

EXAMPLES = ROOT / "examples"


def laid_out(name: str, project: Path) -> Path:
    """An example as a user has it after `npm install`; NumPy lies beside Pyodide."""
    folder = project / f"example-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLES / name, folder)
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "dlpack-web").symlink_to(project / "node_modules" / "dlpack-web")
    (modules / "pyodide").symlink_to(SITE / "pyodide")
    return folder


def shown(browser: Browser, root: Path) -> str:
    with single_page_site(root) as url:
        return says(browser, url)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain-page", "[[42.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"),
        ("worker", "[2,3]: 0,1,4,9,16,25"),
    ],
)
def test_plain_pages(name: str, text: str, project: Path, browser: Browser) -> None:
    assert shown(browser, laid_out(name, project)) == text


def test_vite(project: Path, browser: Browser) -> None:
    folder = project / "example-vite"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLES / "vite", folder)
    run("npx", "vite", "build", "--base=./", at=folder)
    assert shown(browser, folder / "dist") == "2 4 6"


def test_each_example_is_listed() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    for folder in EXAMPLES.iterdir():
        assert folder.is_file() or f"]({folder.name})" in text, folder
