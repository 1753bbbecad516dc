"""The demo page: NumPy, JavaScript, WebGPU and back, with its copies counted."""

from __future__ import annotations

from browser import await_result, open_page
from page_checks import COLOURS, TOLERANCE, assert_clean, open_and_run
from playwright.sync_api import Browser
from serve import Server

COPIES = {
    "NumPy to JS view": 0,
    "JS view after memory growth": 0,
    "upload image": 1,
    "blur and Sobel kernels": 0,
    "readback blurred image": 1,
    "readback edges (out=)": 1,
}


def test_demo_counts_copies_and_matches_numpy(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "demo", server)
        steps = {step["name"]: step for step in result["steps"]}
        assert {name: steps[name]["copies"] for name in COPIES} == COPIES
        for name in ("upload image", "readback blurred image", "readback edges (out=)"):
            assert steps[name]["copied_bytes"] == steps[name]["bytes"] > 0
        assert result["map_async"] == 2
        assert 0 < result["max_abs_error"] <= TOLERANCE
        assert result["checks"]["memory grew and the old view died"]
        for canvas in ("source", "blurred", "edges"):
            assert page.eval_on_selector(f"#{canvas}", COLOURS) > 100, canvas
        assert_clean(watch)


def test_demo_runs_again_on_request(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        first = open_and_run(page, "demo", server)
        page.evaluate("globalThis.__result = undefined")
        page.click("#run")
        second = await_result(page)
        assert second["ok"], second
        assert [s["copies"] for s in second["steps"]] == [
            s["copies"] for s in first["steps"]
        ]
        assert_clean(watch)
