"""The ways of web/docs/howto/install.md that are pages, each copied into an empty folder. Those of
desktop Python are in tests/desktop/test_install.py; tests/docs runs the notebook's."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from projects import ROOT, SITE, run
from sites import says, single_page_site

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
            for line in text.replace("$CLONE", str(ROOT)).splitlines():
                if not re.match(without, line):
                    offline = "npm install --offline --no-audit --no-fund"
                    run("bash", "-c", line.replace("npm install", offline), at=folder)
        else:
            (folder / {"html": "index.html", "js": "main.js"}[language]).write_text(
                text
            )


def shown(browser: Browser, root: Path) -> str:
    with single_page_site(root) as url:
        return says(browser, url)


def test_a_page_with_pyodide(tmp_path: Path, browser: Browser) -> None:
    assert (SITE / "pyodide").is_dir()  # the result of the command that is left out
    copied("A page with Pyodide", tmp_path, without="make")
    assert shown(browser, tmp_path) == "[[42.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"


def test_vite(tmp_path: Path, project: Path, browser: Browser) -> None:
    copied("Vite and other bundlers", tmp_path, without="npm install vite|npx vite")
    vite = project / "node_modules" / "vite"
    (tmp_path / "node_modules" / "vite").symlink_to(vite)
    run("node", str(vite / "bin" / "vite.js"), "build", "--base=./", at=tmp_path)
    assert shown(browser, tmp_path / "dist") == "1 4 2 5 3 6"


def test_the_first_program_leaves_no_tensor(tmp_path: Path) -> None:
    copied("Vite and other bundlers", tmp_path, without="npm install vite|npx vite")
    (tmp_path / "main.js").rename(tmp_path / "main.mjs")
    (tmp_path / "count.mjs").write_text(
        "globalThis.document = { querySelector: () => ({}) };\n"
        'await import("./main.mjs");\n'
        'console.log((await import("dlpack-web")).liveTensors());\n'
    )
    assert run("node", "count.mjs", at=tmp_path) == "0\n"


def test_the_line_of_the_first_page(tmp_path: Path) -> None:
    """It is one line for an empty folder, which is not the clone's."""
    text = (ROOT / "web" / "pages" / "live" / "live.html").read_text("utf-8")
    (line,) = re.findall(r"<code>(CLONE=.+?)</code>", text)
    _, make, install = html.unescape(line).split(" && ")
    assert make == "make -C $CLONE package"
    offline = "npm install --offline --no-audit --no-fund"
    install = install.replace("npm install", offline).replace("$CLONE", str(ROOT))
    run("bash", "-c", install, at=tmp_path)
    assert (tmp_path / "node_modules" / "dlpack-web" / "package.json").is_file()


def test_a_plain_page(tmp_path: Path, browser: Browser) -> None:
    copied("A plain page", tmp_path, without="nothing")
    assert shown(browser, tmp_path) == "float32: 1 2 3"


def test_the_page_names_all_five_ways() -> None:
    headings = re.findall(r"(?m)^## (.+)$", PAGE)
    linked = re.findall(r"(?m)^\| .+ \| \[(.+)\]\(#", PAGE)
    assert headings == ["The files of a release", "A clone", *linked]
    assert len(linked) == 5
