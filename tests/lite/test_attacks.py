"""A notebook file that means harm: nothing of it runs, loads, leads away, covers or replaces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attacks
import pytest
from notebook_page import opened
from playwright.sync_api import Browser, Page, Route
from serve import Server

# Python is not needed, and not waited for.
NO_PYTHON = "await new Promise(() => {});"
NAMES = [*attacks.HTML, *attacks.MARKDOWN, *attacks.OTHERS]

# What must hold of the page whatever is in its outputs; the names of what does not.
JUDGE = """() => {
  const wrong = [];
  const say = (bad, what) => { if (bad) wrong.push(what); };
  say(globalThis.hit !== undefined, "a script ran");
  say(globalThis.mark !== 1, "the page is another one");
  say(document.querySelector(".cell:not([data-state=idle])"), "a cell was run");
  const theirs = [...document.querySelectorAll(".outputs *, .text *")];
  const named = theirs.filter((each) => each.id || each.getAttribute("name"));
  say(named.length, "there are names: " + named.map((each) => each.outerHTML.slice(0, 60)));
  const allowed = ["markdown", "rich", "note", ""];
  for (const each of theirs) {
    const name = each.getAttribute("class") ?? "";
    if (each.closest("pre")) continue;
    say(!allowed.includes(name), "there is the class " + name);
    say(each.hasAttribute("style") && each.localName !== "iframe", "there is a style");
  }
  // Where a control is, it is what a click there reaches; the page's own header is above what scrolls.
  for (const each of document.querySelectorAll("header button, header input, .side .run")) {
    const { x, y, width, height } = each.getBoundingClientRect();
    const middle = y + height / 2;
    if (width === 0 || middle < 0 || middle > innerHeight) continue; // not in sight
    const there = document.elementFromPoint(x + width / 2, middle);
    if (there?.closest("header") && !each.closest("header")) continue;
    const shown = getComputedStyle(each).visibility !== "hidden";
    say(there !== each && shown, `${each.outerHTML} is covered by ${there?.outerHTML}`);
  }
  // Outside of the cells' outputs and texts there is nothing of theirs.
  for (let x = 5; x < innerWidth; x += 40) {
    for (let y = 5; y < innerHeight; y += 40) {
      const there = document.elementFromPoint(x, y)?.closest(".outputs, .text");
      if (!there) continue;
      const box = there.getBoundingClientRect();
      const within = x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
      say(!within, `at ${x}, ${y} there is something of theirs`);
    }
  }
  for (const frame of document.querySelectorAll(".outputs iframe")) {
    say(frame.offsetHeight > 520, "a frame is higher than it may be");
    const inside = frame.contentDocument;
    say(inside?.URL !== "about:srcdoc", "a frame was led away");
    const bad = "script, iframe, object, embed, form, input, button, link, base, dialog, [popover]";
    say(inside?.body.querySelector(bad), "there is something that does not belong there");
  }
  const ground = getComputedStyle(document.body).getPropertyValue("--ground");
  say(!/light-dark|#|rgb/.test(ground), "the page's properties are " + ground);
  return wrong;
}"""


@pytest.fixture(scope="module")
def opened_page(browser: Browser, site: Server) -> Iterator[tuple[Page, list[str]]]:
    """The page, and the addresses that were asked for and should not be."""
    with opened(browser, site, pyodide=NO_PYTHON) as notebook:
        notebook.page.evaluate("() => { globalThis.mark = 1; }")
        asked: list[str] = []

        def answer(route: Route) -> None:  # what the policy refuses does not come here
            asked.append(route.request.url)
            route.fulfill(body="stolen", content_type="text/html")

        notebook.page.context.route(re.compile("steal"), answer)
        yield notebook.page, asked


@pytest.fixture
def page(opened_page: tuple[Page, list[str]]) -> Page:
    return opened_page[0]


@pytest.fixture
def asked(opened_page: tuple[Page, list[str]]) -> list[str]:
    opened_page[1].clear()
    return opened_page[1]


def open_file(page: Page, content: Any, name: str = "bad.ipynb") -> None:
    data = json.dumps(content).encode()
    page.set_input_files(
        "#file", {"name": name, "mimeType": "application/json", "buffer": data}
    )


def settle(page: Page) -> None:
    page.evaluate(
        """() => new Promise((resolve) => {
          const frames = [...document.querySelectorAll("iframe")];
          const ready = (f) => f.contentDocument?.readyState === "complete";
          const tell = (left) => left === 0 || frames.every(ready)
            ? setTimeout(resolve, 60) : setTimeout(tell, 20, left - 1);
          tell(100);
        })"""
    )


@pytest.mark.parametrize("name", NAMES)
def test_attack_fails(name: str, page: Page, asked: list[str]) -> None:
    try:
        made = attacks.cells(name)
        open_file(page, attacks.book(*made), f"{name}.ipynb")
        page.wait_for_function(
            "(name) => document.querySelector('#name').value === name",
            arg=f"{name}.ipynb",
        )
        settle(page)
        assert page.evaluate(JUDGE) == []
        assert asked == []
        click_everywhere(page)
        assert page.evaluate(JUDGE) == []
        assert page.url.split("?")[0].endswith("/notebook/")
        # Links of theirs may open a tab that knows nothing of this one; nothing else asks.
        assert set(asked) <= {attacks.EVIL, f"{attacks.EVIL}/x"}
        assert all(each.evaluate("() => opener === null") for each in tabs(page))
    finally:
        for each in tabs(page):
            each.close()


def tabs(page: Page) -> list[Page]:
    return [each for each in page.context.pages if each is not page]


def click_everywhere(page: Page) -> None:
    """Into every output and text, where something is."""
    for element in page.locator(".outputs > *, .text").all():
        box = element.bounding_box()
        if box is None:
            continue
        element.scroll_into_view_if_needed()
        box = element.bounding_box() or box
        for x in (6, min(40, box["width"] / 2)):
            page.mouse.click(box["x"] + x, box["y"] + min(12, box["height"] / 2))
    page.keyboard.press("Alt+s")


@pytest.mark.parametrize("name", attacks.MALFORMED)
def test_malformed_file_leaves_the_notebook(name: str, page: Page) -> None:
    open_file(page, attacks.book(attacks.text("*kept*")), "good.ipynb")
    page.wait_for_selector(".text em")
    content, words = attacks.MALFORMED[name]
    open_file(page, content)
    page.wait_for_function(
        "(words) => document.querySelector('#problem').textContent.includes(words)",
        arg=words,
    )
    assert page.locator("#name").input_value() == "good.ipynb"
    assert page.locator(".cell").count() == 1
    assert page.locator(".text em").inner_text() == "kept"
