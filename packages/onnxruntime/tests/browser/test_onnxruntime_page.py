"""The onnxruntime page: a network between two kernels."""

from __future__ import annotations

from browser import open_page
from page_checks import COLOURS, assert_clean, open_and_run
from playwright.sync_api import Browser
from serve import Server


def test_onnxruntime_shares_the_device_with_kernels(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "onnxruntime", server)
        assert result["ok"], result
        gpu, cpu, gpu_network, cpu_network = result["steps"]
        # Between the photograph and the answers nothing is copied or read back.
        assert (gpu["copies"], gpu["copied_bytes"]) == (1, gpu["bytes"])
        assert gpu["map_async"] == 1
        assert gpu_network["map_async"] == 1
        assert cpu["map_async"] == cpu_network["map_async"] == 0
        assert result["right"] > 0.95
        assert 0 < result["max_abs_error"] < 1e-4
        assert page.eval_on_selector("#photo", COLOURS) > 100
        assert page.locator("#ways tr").count() == 4
        assert "checks passed" in page.inner_text("#checks-box summary")
        assert_clean(watch)
