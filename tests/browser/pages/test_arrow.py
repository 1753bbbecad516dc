"""The Arrow page: columns of a file, counted on the GPU."""

from __future__ import annotations

from browser import await_result, open_page
from page_checks import COLOURS, assert_clean, open_and_run
from playwright.sync_api import Browser
from serve import Server


def test_arrow_counts_a_column_by_one_copy(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.goto(f"{server.url}arrow.html")
        page.click("#run")
        result = await_result(page)
        assert result["ok"], result
        steps = {step["name"]: step for step in result["steps"]}
        copies = {name: step["copies"] for name, step in steps.items()}
        assert copies["file to columns"] == copies["column to tensor"] == 0
        assert copies["column to GPU"] == copies["which are null, to GPU"] == 1
        assert steps["column to GPU"]["copied_bytes"] == 4 * result["rows"] == 8_000_000
        assert result["counted"] == result["rows"] - result["nulls"] < result["rows"]
        assert page.eval_on_selector("#histogram", COLOURS) > 1
        assert "are null; most are from" in page.inner_text("#answer")
        assert page.get_attribute("#checks-box", "open") is None

        page.evaluate("globalThis.__result = undefined")
        page.select_option("#column", "wind")  # which runs by itself now
        result = await_result(page)
        assert result["ok"], result
        assert (result["column"], result["nulls"]) == ("wind", 0)
        assert "which are null, to GPU" not in [s["name"] for s in result["steps"]]

        page.evaluate("globalThis.__result = undefined")
        page.select_option("#coarseness", "4")
        result = await_result(page)
        assert (result["ok"], result["bins"]) == (True, 32), result
        assert_clean(watch)


def test_arrow_says_that_its_file_is_missing(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, _):
        page.route("**/measurements.arrow", lambda route: route.fulfill(status=404))
        result = open_and_run(page, "arrow", server)
        assert not result["ok"]
        assert "make demo PAGE=arrow" in page.inner_text("#problem")
