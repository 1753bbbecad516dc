"""Outputs that mean harm: nothing of them runs, loads, leads away, covers or replaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attacks
import pytest
from playwright.sync_api import Browser, Page, Route
from python_page import opened
from serve import Server

# Shows outputs below the first block, as its Python would.
SHOW = """async (list) => {
  const { Outputs } = await import("/docs/_static/run/outputs.mjs");
  globalThis.shown?.clear();
  const area = document.querySelector(".outputs");
  area.hidden = false;
  globalThis.shown = new Outputs(area, list);
}"""

# What must hold of the page whatever is in its outputs; the names of what does not.
JUDGE = """() => {
  const wrong = [];
  const say = (bad, what) => { if (bad) wrong.push(what); };
  say(globalThis.hit !== undefined, "a script ran");
  say(globalThis.mark !== 1, "the page is another one");
  const theirs = [...document.querySelectorAll(".outputs *")];
  const named = theirs.filter((each) => each.id || each.getAttribute("name"));
  say(named.length, "there are names: " + named.map((each) => each.outerHTML.slice(0, 60)));
  const allowed = ["markdown", "rich", "note", ""];
  for (const each of theirs) {
    const name = each.getAttribute("class") ?? "";
    if (each.closest("pre")) continue;
    say(!allowed.includes(name), "there is the class " + name);
    say(each.hasAttribute("style") && each.localName !== "iframe", "there is a style");
  }
  // Where a control is, it is what a click there reaches; headers are above what scrolls.
  for (const each of document.querySelectorAll("button, input, .sidebar-tree a")) {
    const { x, y, width, height } = each.getBoundingClientRect();
    const middle = y + height / 2;
    if (width === 0 || middle < 0 || middle > innerHeight) continue; // not in sight
    const there = document.elementFromPoint(x + width / 2, middle);
    say(there?.closest(".outputs"), `${each.outerHTML} is covered by ${there?.outerHTML}`);
  }
  // Outside of the block's outputs there is nothing of theirs.
  for (let x = 5; x < innerWidth; x += 40) {
    for (let y = 5; y < innerHeight; y += 40) {
      const there = document.elementFromPoint(x, y)?.closest(".outputs");
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
  const ground = getComputedStyle(document.body).getPropertyValue("--color-background-primary");
  say(!/#|rgb/.test(ground), "the page's properties are " + ground);
  return wrong;
}"""


@pytest.fixture(scope="module")
def opened_page(browser: Browser, server: Server) -> Iterator[tuple[Page, list[str]]]:
    """The page, and the addresses that were asked for and should not be."""
    with opened(browser, server) as python:
        python.page.evaluate("() => { globalThis.mark = 1; }")
        asked: list[str] = []

        def answer(route: Route) -> None:  # what the policy refuses does not come here
            asked.append(route.request.url)
            route.fulfill(body="stolen", content_type="text/html")

        python.page.context.route(re.compile("steal"), answer)
        yield python.page, asked


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


@pytest.mark.parametrize("name", attacks.NAMES)
def test_attack_fails(name: str, opened_page: tuple[Page, list[str]]) -> None:
    page, asked = opened_page
    asked.clear()
    address = page.url
    try:
        page.evaluate(SHOW, attacks.outputs(name))
        settle(page)
        assert page.evaluate(JUDGE) == []
        assert asked == []
        click_everywhere(page)
        assert page.evaluate(JUDGE) == []
        assert page.url == address
        # Links of theirs may open a tab that knows nothing of this one; nothing else asks.
        assert set(asked) <= {attacks.EVIL, f"{attacks.EVIL}/x"}
        assert all(each.evaluate("() => opener === null") for each in tabs(page))
    finally:
        for each in tabs(page):
            each.close()


def tabs(page: Page) -> list[Page]:
    return [each for each in page.context.pages if each is not page]


def click_everywhere(page: Page) -> None:
    """Into every output, where something is."""
    for element in page.locator(".outputs > *").all():
        box = element.bounding_box()
        if box is None:
            continue
        element.scroll_into_view_if_needed()
        box = element.bounding_box() or box
        for x in (6, min(40, box["width"] / 2)):
            page.mouse.click(box["x"] + x, box["y"] + min(12, box["height"] / 2))
    page.keyboard.press("Alt+s")
