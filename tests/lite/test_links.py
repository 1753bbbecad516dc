"""Links into JupyterLite and foreign notebooks: nothing runs unasked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from browser import open_page
from notebooks import LITE
from playwright.sync_api import Browser, Page, Route
from serve import Server

# What the sender of a link would have run: JavaScript of a page or a worker asks for it.
CODE = "import js; await js.fetch('/stolen')"
SETTLED = """async () => {
  const { started, serviceManager, shell } = globalThis.jupyterapp;
  await started;
  await serviceManager.ready;
  await shell.currentWidget?.sessionContext?.ready; // a kernel that could run code
}"""
STARTED = "() => Boolean(globalThis.jupyterapp)"
# What the kernels have been asked to run; they are idle where that is nothing.
RAN = """() => [...globalThis.jupyterapp.serviceManager.sessions.running()]
  .filter(({ kernel }) => kernel?.execution_state === "busy").length"""
TOUR = re.compile(r"^[^?]+/files/tour\.ipynb")


def book(cells: list[dict[str, Any]]) -> dict[str, Any]:
    kernel = {"display_name": "Python", "language": "python", "name": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


ATTACK = "<script>globalThis.hit = 1</script><img src=x onerror='globalThis.hit = 1'>"


def foreign(kind: str) -> dict[str, Any]:
    """A cell with outputs that mean harm, of a file that says that it may be trusted."""
    output = {"output_type": "display_data", "data": {kind: ATTACK}, "metadata": {}}
    trusted = {"metadata": {"trusted": True}, "id": kind.replace("/", "-")}
    code = {"cell_type": "code", "source": CODE, "execution_count": 7}
    return trusted | code | {"outputs": [output]}


# Scrolls to each cell: only what is in sight is in the page. Its outputs, and numbers of runs.
SHOWN = """async () => {
  const { content } = globalThis.jupyterapp.shell.currentWidget;
  const counts = [];
  let shown = 0;
  for (const [i, cell] of content.widgets.entries()) {
    await content.scrollToItem(i);
    await cell.ready;
    shown += cell.node.querySelectorAll(".jp-OutputArea-output").length;
    counts.push(cell.model.executionCount);
  }
  return [shown, counts];
}"""
SCRIPT = "globalThis.hit = 1; fetch('/stolen')"
RUNS = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"application/javascript": SCRIPT, "text/plain": "x"},
}


@pytest.fixture
def stranger(browser: Browser, site: Server) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what was asked for that only a stranger's code asks for."""
    # Workers of the site would answer for its files.
    options = {"viewport": {"width": 1200, "height": 5000}, "service_workers": "block"}
    with open_page(browser, site.url, **options) as (page, _):
        asked: list[str] = []

        def answer(route: Route) -> None:
            asked.append(route.request.url)
            route.fulfill(body="stolen")

        page.context.route("**/stolen", answer)
        page.context.route(
            "**/api/service-worker-heartbeat", lambda it: it.fulfill(status=204)
        )
        yield page, asked


def test_all_apps_are_built_but_that_whose_links_have_code() -> None:
    assert not (LITE / "repl").exists()
    assert not (LITE / "build" / "repl").exists()
    for app in ("lab", "notebooks", "tree", "edit", "consoles"):
        assert (LITE / app / "index.html").is_file()
    repl = re.compile(r"""getAll\(['"]code['"]\)""")
    loaded = (LITE / "build").rglob("bundle.js")
    assert [file for file in loaded if repl.search(file.read_text("utf-8"))] == []


def test_links_to_the_other_app_lead_nowhere(
    stranger: tuple[Page, list[str]], lite: str
) -> None:
    page, asked = stranger
    answer = page.goto(f"{lite}repl/?execute=1&code={quote(CODE)}")
    assert answer is not None
    assert answer.status == 404
    assert "Page not found" in page.inner_text("h1")
    assert asked == []


def test_the_notebook_page_is_jupyterlite(browser: Browser, site: Server) -> None:
    with open_page(browser, site.url) as (page, _):
        page.goto(f"{site.url}notebook/", wait_until="commit")
        page.wait_for_url(f"{site.url}jupyterlite/lab/index.html?path=tour.ipynb")


DATA = f"data:application/json,{quote(json.dumps(book([foreign('text/html')])))}"
LINKS = {
    "code": f"lab/index.html?execute=1&code={quote(CODE)}",
    "code and a notebook": f"notebooks/index.html?path=tour.ipynb&execute=1&code={quote(CODE)}",
    "code in the tree": f"tree/index.html?execute=1&code={quote(CODE)}",
    "code in the editor": f"edit/index.html?path=photo.jpg&execute=1&code={quote(CODE)}",
    "code in a console": f"consoles/index.html?path=a&execute=1&code={quote(CODE)}",
    "kernel": f"lab/index.html?kernel=python&execute=1&code={quote(CODE)}",
    "a notebook in it": f"lab/index.html?fromURL={quote(DATA)}",
    "a notebook's address": "lab/index.html?fromURL=/jupyterlite/files/tour.ipynb",
    "an address for the tree": "tree/index.html?fromURL=/jupyterlite/files/tour.ipynb",
    "an address for a notebook": "notebooks/index.html?fromURL=/jupyterlite/files/tour.ipynb",
}


@pytest.mark.parametrize("name", LINKS)
def test_links_run_nothing(
    name: str, stranger: tuple[Page, list[str]], lite: str
) -> None:
    page, asked = stranger
    page.route(TOUR, lambda it: it.fulfill(json=book([foreign("text/html")])))
    page.goto(lite + LINKS[name])
    page.wait_for_function(STARTED)
    page.evaluate(SETTLED)
    assert page.evaluate(RAN) == 0
    assert page.evaluate("globalThis.hit") is None
    assert asked == []


def test_the_tree_opens_files(browser: Browser, site: Server, lite: str) -> None:
    with open_page(browser, site.url) as (page, _):
        page.goto(f"{lite}tree/index.html")
        with page.expect_popup() as opened:
            page.get_by_text("photo.jpg", exact=True).dblclick()
        opened.value.wait_for_url(re.compile(r"/edit/(index\.html)?\?path=photo\.jpg"))
        opened.value.wait_for_selector(".jp-ImageViewer img")


@pytest.mark.parametrize("app", ["notebooks", "lab"])
def test_outputs_of_a_foreign_notebook_run_nothing(
    app: str, stranger: tuple[Page, list[str]], lite: str
) -> None:
    page, asked = stranger
    kinds = ("text/html", "text/markdown", "image/svg+xml")
    cells = [foreign(kind) for kind in kinds]
    cells[0]["outputs"] = [RUNS, *cells[0]["outputs"]]
    page.route(TOUR, lambda it: it.fulfill(json=book(cells)))
    page.goto(f"{lite}{app}/index.html?path=tour.ipynb")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_function(STARTED)
    page.evaluate(SETTLED)
    address = page.url
    shown, counts = page.evaluate(SHOWN)
    assert shown >= len(kinds)
    assert set(counts) == {7}
    assert page.evaluate("globalThis.hit") is None
    assert asked == []
    assert page.url == address
    assert page.evaluate(RAN) == 0
    assert len(page.context.pages) == 1
