"""Pages with a photograph read a digit that the reader draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import open_page
from page_checks import assert_clean
from playwright.sync_api import Browser
from serve import Server

ROOT = Path(__file__).resolve().parents[3]
NAMES = sorted(
    path.stem
    for folder in ("web/pages/*", "packages/*/pages")
    for path in ROOT.glob(f"{folder}/*.mjs")
    if "offerOwnDigit(tasks, photo" in path.read_text()
)


@pytest.mark.parametrize("name", NAMES)
def test_page_reads_a_digit_of_ones_own(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.goto(f"{server.url}{name}.html")
        page.click("#read-own")
        page.wait_for_selector("#own:has-text('empty')")
        page.click("#samples button:text-is('3')")  # by keyboard, too: it is a button
        page.wait_for_selector("#own[data-read='3']")
        page.click("#clear")
        x, y, width, height = page.locator("#pad").bounding_box().values()  # type: ignore[union-attr]
        middle = x + width / 2
        page.mouse.move(middle, y + 0.15 * height)  # a stroke downwards is a 1
        page.mouse.down()
        page.mouse.move(middle, y + 0.85 * height, steps=8)
        page.mouse.up()
        page.wait_for_selector("#own[data-read='1']")
        assert_clean(watch)


@pytest.mark.parametrize("name", NAMES)
def test_a_click_is_heard_while_webgpu_is_looked_for(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.add_init_script(  # which runs in an empty page first, where Firefox has none
            "if (globalThis.GPU) GPU.prototype.requestAdapter = () => new Promise(() => {})"
        )
        page.goto(f"{server.url}{name}.html")
        page.wait_for_selector("#run:disabled")
        page.click("#read-own")
        page.wait_for_selector("#own:has-text('empty')")
        assert_clean(watch)
