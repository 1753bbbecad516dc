"""The chain page: tensors go through four libraries on one device."""

from __future__ import annotations

from browser import open_page
from page_checks import COLOURS, TOLERANCE, assert_clean, open_and_run
from playwright.sync_api import Browser, Page
from serve import Server


def test_chain_hands_tensors_on_without_copies(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "chain", server)
        assert result["ok"], result
        for run in (result, result["worker"]):
            steps = {step["name"]: step for step in run["steps"]}
            passes = [
                name for name in steps if name.startswith(("hand to", "take from"))
            ]
            assert len(passes) == 6
            for name in passes:
                moved = [steps[name][key] for key in ("copies", "gpu_copies")]
                assert (steps[name]["bytes"] > 0, moved) == (True, [0, 0]), name
            assert steps["NumPy to GPU"]["copied_bytes"] == 200 * 64 * 4
            assert run["map_async"] == 1
        assert 0 < result["max_abs_error"] <= TOLERANCE
        assert result["model"]["accuracy"] > 0.95
        assert (
            result["worker"]["right"] == result["model"]["right_in_photograph"] > 0.95
        )
        assert page.eval_on_selector("#photo", COLOURS) > 100
        assert_misread_are_told(page, result["model"]["right_in_photograph"])
        assert page.get_attribute("#checks-box", "open") is None
        assert "checks passed" in page.inner_text("#checks-box summary")
        assert_clean(watch)


def assert_misread_are_told(page: Page, right: float) -> None:
    wrong = round(200 * (1 - right))
    assert page.locator("#wrong-ones li").count() == wrong > 0
    assert f"{wrong} misread" in page.inner_text("#wrong-ones summary")
