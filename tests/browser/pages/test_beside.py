"""The page that has a program by hand beside ours."""

from __future__ import annotations

from browser import open_page
from page_checks import assert_clean, open_and_run
from playwright.sync_api import Browser
from serve import Server


def test_both_ways_beside_each_other_give_the_same(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "beside", server)
        assert result["ok"], result
        hand, ours = result["steps"]
        assert result["same"]
        assert (hand["copies"], ours["copies"]) == (4, 2)
        assert ours["lines"] < hand["lines"] / 2
        assert "to the last bit" in page.inner_text("#verdict")
        assert_clean(watch)
