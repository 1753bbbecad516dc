"""The documentation as a site: strict, without dead links, searchable, steady, for everybody."""

from __future__ import annotations

import os
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


# What readers ask for, and the page that answers.
ANSWERS = {
    "npm install": "howto/install",
    "pip install": "howto/install",
    "install": "howto/install",
    "I have NumPy": "howto/choose",
    "release memory": "howto/lifetimes",
    "memory leak": "howto/lifetimes",
    "detached array": "howto/memory-growth",
    "memory growth": "howto/memory-growth",
    "slice": "howto/views",
    "upload": "howto/uploads",
    "safetensors": "howto/files",
    "float64": "howto/dtypes",
    "bfloat16": "howto/dtypes",
    "timestamps": "howto/measure",
    "vite": "howto/bundlers",
    "import map": "howto/bundlers",
    "csp": "howto/csp",
    "unsafe-eval": "howto/csp",
    "worker": "howto/workers",
    "jupyter": "howto/notebooks",
    "node": "howto/deno-and-node",
    "tensorflow.js": "howto/javascript-libraries",
    "three.js": "howto/renderers",
    "onnxruntime": "howto/onnxruntime",
    "duckdb": "howto/arrow",
    "wgsl": "tutorials/first-kernel",
    "getting started": "tutorials/first-tensor",
    "webcam": "tutorials/images",
    "javascript": "tutorials/javascript",
    "device lost": "explanation/faults",
    "shader error": "explanation/faults",
    "limits": "explanation/limits",
    "zero copy": "explanation/one-copy",
    "getbuffer": "coming/getbuffer",
    "wgpu-py": "coming/wgpu-py",
    "bufferError": "reference/errors",
    "browser support": "reference/runtimes",
    "benchmarks": "reference/benchmarks",
    "from_dlpack": "reference/python",
    "request_device": "reference/webgpu",
}
FIRST = """(queries) => queries.map((text) =>
  Search._performSearch(...Search._parseQuery(text)).at(-1)?.[0])"""


def test_search_puts_the_answer_first(open_docs: Callable) -> None:
    page, _ = open_docs("search.html?q=npm+install")
    first = page.wait_for_selector("#search-results ul.search li a")
    assert first
    assert first.get_attribute("href") == "howto/install.html"
    found = page.evaluate(FIRST, list(ANSWERS))
    assert dict(zip(ANSWERS, found, strict=True)) == ANSWERS


def test_search_knows_only_pages_that_are_there() -> None:
    text = (ROOT / "web" / "docs" / "_static" / "search-words.mjs").read_text("utf-8")
    names = re.findall(r'(?m)^  "([^"]+)": \[', text)
    assert len(names) > 30
    assert [name for name in names if not (SITE / f"{name}.html").exists()] == []


def test_pages_lead_to_the_site_and_its_source() -> None:
    for name, up in (("index.html", "./../"), ("howto/install.html", "../../")):
        text = (SITE / name).read_text("utf-8")
        assert f'href="{up}index.html">Site<' in text
        assert re.search(r'href="https://[^"]+">Source<', text)


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_nothing_keeps_people_out(
    name: str, viewport: dict[str, int] | None, open_docs: Callable
) -> None:
    """axe-core finds nothing, light or dark."""
    page, _ = open_docs(name, **({"viewport": viewport} if viewport else {}))
    page.wait_for_load_state("networkidle")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], scheme


@pytest.mark.skipif(
    "WHOLE" not in os.environ, reason="minutes: `make test-all` does it"
)
def test_no_page_keeps_people_out(open_docs: Callable) -> None:
    """axe-core finds nothing on any page."""
    page, _ = open_docs("index.html")
    found = {}
    for file in built():
        name = file.relative_to(SITE).as_posix()
        page.goto(re.sub(r"/docs/.*", f"/docs/{name}", page.url))
        found[name] = violations(page)
    assert len(found) > 50
    assert {name: each for name, each in found.items() if each} == {}


def violations(page: Page) -> list[tuple[str, list[str]]]:
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found
    ]


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
