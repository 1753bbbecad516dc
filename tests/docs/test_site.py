"""The documentation as a site: strict, without dead links, searchable, steady, for everybody."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import pytest
from documentation import ROOT, SITE, built, dead_links
from playwright.sync_api import Page
from release import UNSETTLED, address

BENCHMARKS = "reference/benchmarks"  # a table of the bench
PHONE = {"width": 390, "height": 844}
AXE = ROOT / "build" / "libraries" / "node_modules" / "axe-core" / "axe.min.js"
WHOLE = "WHOLE" in os.environ  # other runs take some pages
LOOKED_AT = [
    "index.html",
    "tutorials/first-tensor.html",
    "reference/python.html" if WHOLE else "reference/kernels.html",
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
    "pytorch": "coming/pytorch",
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
    "wgpu-py": "coming/wgpu-py",
    "wgsl": "tutorials/first-kernel",
    "worker": "howto/workers",
    "zero copy": "explanation/one-copy",
    "zeros": "howto/kernels",
}
# In users' words, and the pages of which one has to be among the first four.
QUESTIONS = {
    "can I use cupy code in the browser": "coming/cupy",
    "pytorch model in the browser": "coming/pytorch",
    "torch tensor to webgpu": "coming/pytorch",
    "make my bundle smaller": "howto/bundle-size",
    "how many kb does it add": "howto/bundle-size",
    "install on windows": "howto/windows",
    "powershell": "howto/windows",
    "random numbers on the gpu": "howto/kernels",
    "fill a gpu array with ones": "howto/kernels howto/uploads",
    "zarr from s3 to gpu": "howto/zarr",
    "can I use it commercially": "reference/license",
    "cheat sheet": "reference/cheatsheet",
    "which is better tfjs or dlpack-web": "coming/compare",
    "difference to getbuffer": "coming/getbuffer coming/compare",
    "why is my array suddenly empty": "howto/memory-growth reference/errors",
    "my result is all zeros": "reference/errors",
    "run python without freezing the page": "howto/workers",
    "use the gpu of my laptop from a jupyter server": "tutorials/cloud-kernel howto/page-gpu",
    "draw numpy array on a canvas": "tutorials/images",
    "does it work on iphone safari": "reference/runtimes",
}
FIND = """async (queries) => {
  const { find } = await import(new URL("_static/search.mjs", location));
  const pages = (found) => found.slice(0, 4).map(({ page }) => page);
  return Promise.all(queries.map(async (query) => pages(await find(query))));
}"""


def test_search_puts_the_answer_first(open_docs: Callable) -> None:
    page, _ = open_docs("index.html")
    found = page.evaluate(FIND, list(ANSWERS))
    wrong = {
        query: first
        for (query, right), (first, *_) in zip(ANSWERS.items(), found, strict=True)
        if first not in right.split()
    }
    assert wrong == {}


def test_search_answers_questions(open_docs: Callable) -> None:
    page, _ = open_docs("index.html")
    found = page.evaluate(FIND, list(QUESTIONS))
    missed = {
        query: first
        for (query, right), first in zip(QUESTIONS.items(), found, strict=True)
        if not set(first) & set(right.split())
    }
    assert len(missed) <= 2, missed


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
        assert (address(ROOT) != UNSETTLED) == (">Source<" in text)


def test_no_link_leads_to_an_address_that_is_not_set() -> None:
    pages = [
        *built(),
        *ROOT.glob("web/**/*.html"),
        *ROOT.glob("packages/*/pages/*.html"),
    ]
    wrong = [page for page in pages if UNSETTLED in page.read_text("utf-8")]
    assert wrong == []
    assert "](http://localhost" not in (ROOT / "README.md").read_text("utf-8")


def test_sentences_name_the_thing_instead_of_what_it_is() -> None:
    """At most 2 in 1,000 words: pages, public docstrings of both languages, and texts."""
    entries = json.loads((SITE / "search.json").read_text("utf-8"))
    texts = [each.get("text", "") for each in entries if each["page"] != BENCHMARKS]
    names = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
    texts += [(ROOT / name).read_text("utf-8") for name in names]
    words = [word.lower() for text in texts for word in re.findall(r"[A-Za-z']+", text)]
    assert words.count("what") <= len(words) / 500


def test_every_listing_can_be_copied(open_docs: Callable) -> None:
    page, _ = open_docs("howto/install.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    listings = page.locator(".highlight > pre")
    assert page.locator(".copy-listing, .block .copy").count() == listings.count() > 5
    page.locator(".copy-listing").first.click()
    page.locator(".copy-listing", has_text="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == listings.first.text_content().strip()


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


@pytest.mark.skipif(not WHOLE, reason="minutes: `make test-all` does it")
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
    names = [file.relative_to(SITE).as_posix() for file in built()]
    for name in names if WHOLE else LOOKED_AT:
        page.goto(base + name)
        if not fits(page):
            wide.append(name)
    assert wide == []
