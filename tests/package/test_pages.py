"""Pages of users, with real Pyodides: the tarball of `make package`, bundled and plain."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import open_page
from playwright.sync_api import Browser
from projects import SITE, lay_out, run, shipped_wheel
from sites import found, single_page_site, site

EXPECTED = {
    "shape": [3, 2],
    "values": [0, 3, 1, 4, 2, 5],
    "isTensor": True,
    "live": 0,
}
ESBUILD = ("npx", "esbuild", "--bundle", "--splitting", "--format=esm", "--minify")


@pytest.fixture(scope="module")
def page(project: Path) -> Path:
    """The project, with what a page of a user does."""
    folder = project / "page"
    shutil.rmtree(folder, ignore_errors=True)
    lay_out(folder, "page")
    shutil.copy(SITE / "icon.svg", folder)
    return folder


@pytest.fixture(scope="module")
def url(project: Path) -> Iterator[str]:
    with site(project, {"/pyodide/": SITE / "pyodide"}) as running:
        yield running


def result_of(browser: Browser, url: str, options: str = "{}") -> dict[str, object]:
    origin = "/".join(url.split("/")[:3])
    with open_page(browser, origin) as (page, watch):
        page.goto(url)
        page.wait_for_function("() => typeof globalThis.run === 'function'")
        result: dict[str, object] = page.evaluate(f"run({options})")
        assert watch.complaints() == []
    return result


def test_vite(page: Path, browser: Browser, url: str) -> None:
    run("npx", "vite", "build", "--base=./", at=page)
    assert len(list((page / "dist" / "assets").glob("*.whl"))) == 1
    assert result_of(browser, f"{url}page/dist/index.html") == EXPECTED


def test_esbuild(page: Path, browser: Browser, url: str) -> None:
    run(*ESBUILD, "main.js", "--outdir=bundle", at=page)
    for name in ("index.html", "icon.svg"):
        shutil.copy(page / name, page / "bundle")
    # esbuild does not know `new URL(file, import.meta.url)`: the page says where it is.
    shutil.copy(shipped_wheel(page.parent), page / "bundle" / "dlpack_web.HASH.whl")
    where = '{ wheel: new URL("dlpack_web.HASH.whl", location).href }'
    assert result_of(browser, f"{url}page/bundle/index.html", where) == EXPECTED


def test_page_without_bundler(page: Path, browser: Browser, url: str) -> None:
    package = page.parent / "node_modules" / "dlpack-web"
    exports = json.loads((package / "package.json").read_text())["exports"]
    source = (page / "main.js").read_text()
    for name, file in exports.items():
        path = f'"../../node_modules/dlpack-web/{file}"'
        source = source.replace(f'"dlpack-web{name.removeprefix(".")}"', path)
    plain = page / "plain"
    plain.mkdir()
    (plain / "main.js").write_text(source)
    for name in ("index.html", "icon.svg"):
        shutil.copy(page / name, plain)
    assert result_of(browser, f"{url}page/plain/index.html") == EXPECTED


def test_a_wheel_that_was_left_behind_is_told(
    project: Path, browser: Browser, wheel_hash: str
) -> None:
    """Not the page of HTML that comes instead is unpacked, nor is that all there is to know."""
    folder = project / "left-behind"
    shutil.rmtree(folder, ignore_errors=True)
    lay_out(folder, "wheel")
    run(*ESBUILD, "page.js", "--outdir=bundle", at=folder)
    shutil.copy(folder / "index.html", folder / "bundle")
    with single_page_site(folder / "bundle") as url:
        told = found(browser, url)
        assert "is an HTML page" in told
        assert "copy dist/*.whl of the npm package dlpack-web@" in told
        assert "connect(pyodide, { wheel: url })" in told
        shutil.copy(shipped_wheel(project), folder / "bundle" / "any-name.whl")
        assert found(browser, url, '{ wheel: "any-name.whl" }') == wheel_hash
