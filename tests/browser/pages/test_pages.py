"""Every page of the site, opened as a reader would, and what it publishes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import open_page
from page_checks import assert_clean, open_and_run
from playwright.sync_api import Browser, expect
from serve import Server

WEB = Path(__file__).resolve().parents[3] / "web"
PACKAGES = sorted(path.stem for path in WEB.parent.glob("packages/*/pages/*.html"))
# Those of PyScript need the packages of JupyterLite: tests/lite has them.
PAGES = sorted(
    path.stem
    for path in [*WEB.glob("pages/*/*.html"), *WEB.glob("site/*.html")]
    if ".eval" not in path.stem
)
PAGES += PACKAGES
PHONE = {"width": 390, "height": 844}
AXE = WEB.parent / "build" / "libraries" / "node_modules" / "axe-core" / "axe.min.js"

NO_ADAPTER = "if (globalThis.GPU) GPU.prototype.requestAdapter = async () => null"


# The others are run by tests of their own, or have nothing to run.
@pytest.mark.parametrize(
    "name",
    sorted(
        {*PAGES}
        - {
            "404",
            "arrow",
            "building",
            "chain",
            "gpu",
            "live",
            *PACKAGES,
        }
    ),
)
def test_page_runs_without_complaint(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, name, server)
        assert result["ok"], result
        assert_clean(watch)


@pytest.mark.parametrize("wide", [320, 390])
@pytest.mark.parametrize("name", PAGES)
def test_page_fits_a_phone(
    name: str, wide: int, browser: Browser, server: Server
) -> None:
    viewport = {**PHONE, "width": wide}
    with open_page(browser, server.url, viewport=viewport) as (page, watch):
        page.goto(f"{server.url}{name}.html")
        root = "document.documentElement"
        width = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        assert width == 0  # nothing to scroll to
        assert_clean(watch)


@pytest.mark.parametrize("name", ["arrow", "chain", "demo", "gpu", "live", *PACKAGES])
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


@pytest.mark.parametrize("name", ["arrow", "chain", "demo", "gpu", "live", *PACKAGES])
def test_page_says_what_is_missing_before_anything_is_pressed(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.add_init_script(NO_ADAPTER)
        page.goto(f"{server.url}{name}.html")
        page.wait_for_selector("#problem:has-text('no adapter')")
        if name == "live":
            page.wait_for_selector("#compare-status:has-text('Needs WebGPU')")
            assert page.is_disabled("#compare")
            return
        assert page.is_disabled("#run")
        page.evaluate("delete GPU.prototype.requestAdapter")
        page.evaluate("GPU.prototype.requestAdapter = async () => ({})")  # it came
        page.click("#problem button")
        page.wait_for_selector("#problem", state="hidden")
        assert page.is_enabled("#run")
        assert_clean(watch)


@pytest.mark.parametrize("name", ["arrow", "chain", "demo", *PACKAGES])
def test_a_recorded_result_is_shown_until_the_page_runs(
    name: str, browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.goto(f"{server.url}{name}.html")
        for image in page.locator(".recorded").all():
            expect(image).not_to_have_js_property("naturalWidth", 0)
        page.click("#run:enabled")
        expect(page.locator(".recorded")).to_have_count(0)
        assert_clean(watch)


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", [*PAGES, "pyscript.eval", "pyscript_worker.eval"])
def test_nothing_keeps_people_out(
    name: str, viewport: dict[str, int] | None, browser: Browser, server: Server
) -> None:
    """axe-core finds nothing, light or dark."""
    options = {"viewport": viewport} if viewport else {}
    with open_page(browser, server.url, **options) as (page, _):
        page.goto(f"{server.url}{name}.html")
        page.wait_for_load_state("networkidle")
        page.evaluate(AXE.read_text())
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate("async () => (await axe.run()).violations")
            told = [
                (each["id"], [node["html"][:120] for node in each["nodes"]])
                for each in found
            ]
            assert told == [], scheme


def test_the_landing_page_leads_to_all_others(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, _):
        page.goto(server.url)
        links = page.eval_on_selector_all(
            "a", "(all) => all.map((a) => a.getAttribute('href'))"
        )
        pages = {f"{name}.html" for name in {*PAGES} - {"404", "building", "live"}}
        assert pages | {
            "jupyterlite/lab/?path=tour.ipynb",
            "pyscript.eval.html",
        } <= set(links)


def test_all_pages_have_the_same_navigation() -> None:
    found = {
        page.stem: re.findall(r'<a (?:class="home" )?href="([^"]*)">', nav[1])
        for page in [*WEB.glob("pages/*/*.html"), *WEB.glob("site/*.html")]
        if (
            nav := re.search(
                r'<nav class="site".*?>(.*?)</nav>', page.read_text(), re.DOTALL
            )
        )
    }
    absolute = [link.replace("index.html", "") for link in found["live"]]
    assert len(absolute) == 4
    ours = [link if ":" in link else f"/{link}" for link in absolute]
    assert found.pop("404") == ours
    assert set(map(tuple, found.values())) == {tuple(found["live"])}
    pages = {page.stem for page in WEB.glob("pages/*/*.html")}
    assert pages == set(found)
