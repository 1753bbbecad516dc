"""The documentation as a site: strict, without dead links, searchable, steady, for everybody."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from documentation import ROOT, SITE, built, dead_links
from playwright.sync_api import Page

PHONE = {"width": 390, "height": 844}
AXE = ROOT / "build" / "libraries" / "node_modules" / "axe-core" / "axe.min.js"
LOOKED_AT = [
    "index.html",
    "tutorials/first-tensor.html",
    "reference/python.html",
    "reference/errors.html",
    "search.html",
]
# What moved on its own since the page began.
SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value;
  }).observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(sum), 0)));
})"""


def test_pages_keep_the_policy() -> None:
    """No scripts, styles or handlers inside of a page."""
    inline = re.compile(
        r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")|<style|<[^>]+\s(style|on[a-z]+)=\""
    )
    for page in built():
        found = inline.search(page.read_text("utf-8"))
        assert found is None, (page.relative_to(SITE), found)


def test_no_dead_links() -> None:
    site = ROOT / "build" / "site"
    dead = [
        f"{page.relative_to(SITE)}: {link}"
        for page in built()
        for link in dead_links(page, site)
    ]
    assert dead == []


def test_the_landing_page_leads_here() -> None:
    assert 'href="docs/"' in (ROOT / "web" / "pages" / "live" / "live.html").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("from_dlpack", "reference/python.html"),
        ("released", "reference/errors.html"),
        ("memory growth", "howto/memory-growth.html"),
        ("fromTypedArray", "reference/typescript/"),
    ],
)
def test_search_finds(words: str, page: str, open_docs: Callable) -> None:
    opened, _ = open_docs("index.html")
    opened.fill("input[name=q]", words)
    opened.press("input[name=q]", "Enter")
    opened.wait_for_selector("#search-results ul.search li")
    opened.wait_for_selector(".search-summary:has-text('found')")
    links = opened.eval_on_selector_all(
        "#search-results li a", "(all) => all.map((a) => a.href)"
    )
    assert any(f"/docs/{page}" in link for link in links), links


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_nothing_keeps_people_out(
    name: str, viewport: dict[str, int] | None, open_docs: Callable
) -> None:
    """axe-core finds nothing serious, light or dark."""
    page, _ = open_docs(name, **({"viewport": viewport} if viewport else {}))
    page.wait_for_load_state("networkidle")
    page.evaluate(AXE.read_text("utf-8"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("async () => (await axe.run()).violations")
        serious = [
            (each["id"], [node["html"][:120] for node in each["nodes"]])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], scheme


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", LOOKED_AT[:3])
def test_nothing_moves_as_it_loads(
    name: str, viewport: dict[str, int] | None, open_docs: Callable
) -> None:
    page, _ = open_docs(name, **({"viewport": viewport} if viewport else {}))
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SHIFT) < 0.02


def fits(page: Page) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"))


def test_every_page_fits_a_phone(open_docs: Callable) -> None:
    page, _ = open_docs(viewport=PHONE)
    base = page.url.removesuffix("index.html")
    wide = []
    for file in built():
        page.goto(base + file.relative_to(SITE).as_posix())
        if not fits(page):
            wide.append(file.relative_to(SITE).as_posix())
    assert wide == []
