"""Interrupts of our notebook page that arrive before a cell runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route
from serve import Server
from test_page import Notebook, opened

# Both messages wait at the worker before it looks at one.
RUN_AND_INTERRUPT = """() => {
  const options = { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true };
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", options));
  document.querySelector("#interrupt").click();
}"""


@pytest.fixture(scope="module")
def notebook(browser: Browser, site: Server) -> Iterator[Notebook]:
    with opened(browser, site) as made:
        made.idle()
        yield made


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import asyncio; await asyncio.sleep(1000)", "print('ran')"],
)
def test_an_interrupt_right_behind_run_stops_the_cell(
    notebook: Notebook, code: str
) -> None:
    page = notebook.page
    page.locator(".cell").last.focus()
    page.click("#add-code")
    page.keyboard.insert_text(code)
    page.evaluate(RUN_AND_INTERRUPT)
    said = notebook.finish()
    assert "KeyboardInterrupt" in said
    assert "\nran" not in said
    assert notebook.run("1 + 1") == "2"
    assert notebook.watch.complaints() == []


def test_an_interrupt_while_packages_load_stops_the_cell(notebook: Notebook) -> None:
    held: list[Route] = []
    page = notebook.page
    page.route("**/packages/pillow-*.whl", lambda route: held.append(route))
    notebook.start("import PIL; print('ran')")
    while not held:
        page.wait_for_timeout(20)
    page.click("#interrupt")
    assert "KeyboardInterrupt" in notebook.finish()
    for route in held:
        route.continue_()
    page.unroute("**/packages/pillow-*.whl")
    assert notebook.run("import PIL; print('ran')") == "ran\n"
    assert notebook.watch.complaints() == []
