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


# What readers ask for, and the pages of which one has to be the first.
ANSWERS = {
    "add two arrays": "howto/kernels",
    "all zeros": "reference/errors",
    "benchmarks": "reference/benchmarks",
    "bfloat16": "howto/dtypes",
    "browser support": "reference/runtimes",
    "BufferError": "reference/errors",
    "byteLength 0": "howto/memory-growth",
    "cors": "howto/files",
    "csp": "howto/csp",
    "custom kernel": "howto/kernels tutorials/first-kernel",
    "cuda": "coming/ort-io-binding",
    "detached arraybuffer": "howto/memory-growth",
    "device lost": "explanation/faults",
    "dispose": "howto/lifetimes",
    "duckdb": "howto/arrow",
    "float64 on gpu": "howto/dtypes",
    "from_dlpack": "reference/python",
    "fromTypedArray": "reference/typescript/index/index",
    "getting started": "tutorials/first-tensor",
    "getbuffer": "coming/getbuffer",
    "gpu to numpy": "howto/uploads",
    "how do I install": "howto/install",
    "how fast is it": "reference/benchmarks",
    "I have NumPy": "howto/choose",
    "import map": "howto/bundlers",
    "iphone": "reference/runtimes",
    "javascript without python": "tutorials/javascript",
    "jupyter notebook": "howto/notebooks",
    "limits": "explanation/limits",
    "load safetensors": "howto/files",
    "memory leak": "howto/lifetimes",
    "my own adapter": "howto/add-an-adapter",
    "next.js": "howto/bundlers",
    "no gpu adapter found": "reference/errors",
    "node": "howto/deno-and-node",
    "npm install": "howto/install",
    "numpy to typed array": "tutorials/first-tensor",
    "pandas dataframe": "howto/arrow",
    "pip install": "howto/install",
    "profiling": "howto/measure",
    "pytorch": "reference/interop",
    "read back": "howto/uploads",
    "releasing tensors": "howto/lifetimes",
    "request_device": "reference/webgpu",
    "shader compile error": "explanation/faults",
    "slicing": "howto/views",
    "sum reduction": "howto/kernels",
    "synchronous readback": "howto/notebooks howto/uploads",
    "tensorflo.js": "howto/javascript-libraries",
    "three.js": "howto/javascript-libraries howto/renderers",
    "timestamps": "howto/measure",
    "unsafe-eval": "howto/csp",
    "vite": "howto/bundlers",
    "webcam": "tutorials/images",
    "webgpu not available": "reference/errors",
    "websocket": "howto/wire",
    "wgpu-py": "coming/wgpu-py",
    "wgsl": "tutorials/first-kernel",
    "worker": "howto/workers",
    "zero copy": "explanation/one-copy",
    "zeros": "howto/uploads",
}
FIND = """async (queries) => {
  const { find } = await import(new URL("_static/search.mjs", location));
  return Promise.all(queries.map(async (query) => (await find(query))[0]?.page));
}"""


def test_search_puts_the_answer_first(open_docs: Callable) -> None:
    page, _ = open_docs("index.html")
    found = page.evaluate(FIND, list(ANSWERS))
    wrong = {
        query: first
        for (query, right), first in zip(ANSWERS.items(), found, strict=True)
        if first not in right.split()
    }
    assert wrong == {}


def test_search_leads_to_the_name(open_docs: Callable) -> None:
    page, _ = open_docs("howto/install.html")
    page.fill("input[name=q]", "from_dlpack")
    page.press("input[name=q]", "Enter")
    page.click("#search-results a >> nth=0")
    page.wait_for_url("**/docs/reference/python.html#dlpack_web.from_dlpack")


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
