"""Every page of the site, opened as a reader would, and what it publishes."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Watch, await_result, open_page
from playwright.sync_api import Browser, Page
from serve import Server

WEB = Path(__file__).resolve().parents[2] / "web"
# Those of PyScript need the packages of JupyterLite: tests/lite has them.
PAGES = sorted(path.stem for path in WEB.glob("*.html") if ".eval" not in path.stem)
PHONE = {"width": 390, "height": 844}

# Largest difference that float32 sums of some hundred products in 0..1 may show.
TOLERANCE = 1e-5
COPIES = {
    "NumPy to JS view": 0,
    "JS view after memory growth": 0,
    "upload image": 1,
    "blur and Sobel kernels": 0,
    "readback blurred image": 1,
    "readback edges (out=)": 1,
}

# Is a canvas drawn: how many different colours has a coarse grid over it?
COLOURS = """(canvas) => {
  const { data } = canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height);
  const words = new Uint32Array(data.buffer);
  return new Set(words.filter((_, i) => i % 97 === 0)).size;
}"""


@pytest.mark.parametrize("name", PAGES)
def test_page_runs_without_complaint(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, name, server)
        assert result["ok"], result
        assert_clean(watch)


@pytest.mark.parametrize("name", PAGES)
def test_page_fits_a_phone(name: str, browser: Browser, server: Server) -> None:
    with open_page(browser, server.url, viewport=PHONE) as (page, watch):
        page.goto(f"{server.url}{name}.html")
        root = "document.documentElement"
        width = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        assert width == 0  # nothing to scroll to
        assert_clean(watch)


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
        second = await_result(page, 120)
        assert second["ok"], second
        assert [s["copies"] for s in second["steps"]] == [
            s["copies"] for s in first["steps"]
        ]
        assert_clean(watch)


def test_chain_hands_tensors_on_without_copies(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "chain", server)
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
        assert_clean(watch)


@pytest.mark.parametrize("name", ["chain", "demo"])
@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("delete Navigator.prototype.gpu", "no WebGPU"),
        (
            "if (globalThis.GPU) GPU.prototype.requestAdapter = async () => null",
            "no adapter",
        ),
    ],
    ids=["no navigator.gpu", "no adapter"],
)
def test_page_without_webgpu_says_what_to_do(
    name: str, script: str, advice: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.add_init_script(script)
        result = open_and_run(page, name, server)
        assert not result["ok"]
        assert advice in page.inner_text("#problem")
        assert_clean(watch)


def open_and_run(page: Page, name: str, server: Server) -> dict:
    page.goto(f"{server.url}{name}.html#auto")
    return await_result(page, 120)


def assert_clean(watch: Watch) -> None:
    assert watch.complaints() == []


def test_authors_page_judges_what_the_reader_types(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "authors", server)
        assert result["figures"] == page.locator("#figures tr").count() == 5

        def broken(name: str) -> list[str]:
            page.click(f"#breaks button:text-is('{name}')")
            page.wait_for_selector("#verdict[data-running=false]", timeout=15_000)
            found = page.locator("#rules [data-state=broken]")
            return [str(each.get_attribute("data-rule")) for each in found.all()]

        assert broken("claim a neighbour") == ["S5"]
        assert broken("ignore copy: true") == ["R4"]
        assert broken("forget the versions") == ["R2"]
        assert broken("share the shape") == ["F14"]
        assert broken("hang") == []
        assert page.text_content("#verdict") == "it did not end within 5 s"
        assert broken("mend it") == []
        page.fill("#producer", "function make() {")
        page.wait_for_selector("#verdict:has-text('SyntaxError')")
        page.fill("#producer", "throw new Error('what is this?')")
        page.wait_for_selector("#verdict:has-text('what is this?')")
        assert_clean(watch)
