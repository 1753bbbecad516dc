"""Every page of the site, opened as a reader would, and what it publishes."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Watch, await_result, open_page
from playwright.sync_api import Browser, Page
from serve import Server

WEB = Path(__file__).resolve().parents[3] / "web"
# Those of PyScript need the packages of JupyterLite: tests/lite has them.
PAGES = sorted(
    path.stem
    for path in [*WEB.glob("pages/*/*.html"), *WEB.glob("site/*.html")]
    if ".eval" not in path.stem
)
PHONE = {"width": 390, "height": 844}
AXE = WEB.parent / "build" / "libraries" / "node_modules" / "axe-core" / "axe.min.js"

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

NO_ADAPTER = "if (globalThis.GPU) GPU.prototype.requestAdapter = async () => null"

# Is a canvas drawn: how many different colours has a coarse grid over it?
COLOURS = """(canvas) => {
  const { data } = canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height);
  const words = new Uint32Array(data.buffer);
  return new Set(words.filter((_, i) => i % 97 === 0)).size;
}"""


# The others are run by tests of their own, or have nothing to run.
@pytest.mark.parametrize(
    "name",
    sorted({*PAGES} - {"404", "arrow", "beside", "chain", "live", "onnxruntime"}),
)
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
        second = await_result(page)
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
        assert "checks held" in page.inner_text("#checks-box summary")
        assert_clean(watch)


def assert_misread_are_told(page: Page, right: float) -> None:
    wrong = round(200 * (1 - right))
    assert page.locator("#wrong-ones li").count() == wrong > 0
    assert f"{wrong} misread" in page.inner_text("#wrong-ones summary")


@pytest.mark.parametrize(
    "name", ["arrow", "beside", "chain", "demo", "live", "onnxruntime"]
)
@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("delete Navigator.prototype.gpu", "no WebGPU"),
        (NO_ADAPTER, "no adapter"),
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


@pytest.mark.parametrize(
    "name", ["arrow", "beside", "chain", "demo", "live", "onnxruntime"]
)
def test_page_says_what_is_missing_before_anything_is_pressed(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.add_init_script(NO_ADAPTER)
        page.goto(f"{server.url}{name}.html")
        page.wait_for_selector("#problem:has-text('no adapter')")
        if name == "live":
            assert page.is_disabled("#pause")
            assert "def frame" in page.input_value("#program")
            return
        assert page.is_disabled("#run")
        page.evaluate("delete GPU.prototype.requestAdapter")
        page.evaluate("GPU.prototype.requestAdapter = async () => ({})")  # it came
        page.click("#problem button")
        page.wait_for_selector("#problem", state="hidden")
        assert page.is_enabled("#run")
        assert_clean(watch)


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_keeps_people_out(
    name: str, viewport: dict[str, int] | None, browser: Browser, server: Server
) -> None:
    """axe-core finds nothing serious, light or dark."""
    options = {"viewport": viewport} if viewport else {}
    with open_page(browser, server.url, **options) as (page, _):
        page.goto(f"{server.url}{name}.html")
        page.wait_for_load_state("networkidle")
        page.evaluate(AXE.read_text())
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate("async () => (await axe.run()).violations")
            serious = [
                (each["id"], [node["html"][:120] for node in each["nodes"]])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], scheme


def test_the_landing_page_leads_to_all_others(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, _):
        page.goto(server.url)
        links = page.eval_on_selector_all(
            "a", "(all) => all.map((a) => a.getAttribute('href'))"
        )
        pages = {f"{name}.html" for name in PAGES} - {"404.html", "live.html"}
        assert pages | {"notebook/", "pyscript.eval.html"} <= set(links)


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
        assert "checks held" in page.inner_text("#checks-box summary")
        assert_clean(watch)


@pytest.mark.parametrize("name", ["chain", "onnxruntime"])
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


@pytest.mark.parametrize("name", ["chain", "onnxruntime"])
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


def open_and_run(page: Page, name: str, server: Server) -> dict:
    page.goto(f"{server.url}{name}.html#auto")
    return await_result(page)


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
            page.wait_for_selector("#verdict[data-running=false]")
            found = page.locator("#rules [data-state=broken]")
            return [str(each.get_attribute("data-rule")) for each in found.all()]

        assert broken("claim a neighbour") == ["S5"]
        assert broken("ignore copy: true") == ["R4"]
        assert broken("forget the versions") == ["R2"]
        assert broken("share the shape") == ["F14"]
        assert broken("clear at release") == ["O1"]
        assert broken("hang") == []
        assert page.text_content("#verdict") == "it did not end within 5 s"
        assert broken("mend it") == []
        page.fill("#producer", "function make() {")
        page.wait_for_selector("#verdict:has-text('SyntaxError')")
        page.fill("#producer", "throw new Error('what is this?')")
        page.wait_for_selector("#verdict:has-text('what is this?')")
        assert_clean(watch)
