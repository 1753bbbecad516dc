"""The npm package as users get it: the tarball of `make package`, installed into empty
projects of two bundlers, and on a page without one."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import open_page
from playwright.sync_api import Browser
from serve import Server

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "package"
EXPECTED = {
    "shape": [3, 2],
    "values": [0, 3, 1, 4, 2, 5],
    "isTensor": True,
    "live": 0,
}
PAGE = """<!doctype html>
<title>Package test</title>
<link rel="icon" href="/icon.svg">
<script type="module" src="./main.js"></script>
"""


@pytest.fixture(scope="module")
def project() -> Path:
    """A project with the bundlers and the tarball in node_modules."""
    folder = ROOT / "build" / "package"
    folder.mkdir(parents=True, exist_ok=True)
    lock = (SOURCES / "package-lock.json").read_bytes()
    stamp = folder / ".installed"
    if not stamp.exists() or stamp.read_bytes() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCES / name, folder)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", at=folder)
        stamp.write_bytes(lock)
    for path in SOURCES.iterdir():
        if path.suffix in {".html", ".js", ".ts"}:
            shutil.copy(path, folder)
    shutil.copy(ROOT / "web" / "icon.svg", folder)
    (tarball,) = (ROOT / "dist").glob("*.tgz")
    # As npm does, but without writing what this machine is into package.json.
    options = ("--no-save", "--no-package-lock", "--no-audit", "--no-fund")
    run("npm", "install", *options, str(tarball), at=folder)
    return folder


@pytest.fixture(scope="module")
def site(project: Path) -> Iterator[Server]:
    mounts = {"/pyodide/": ROOT / "build" / "site" / "pyodide"}
    with Server(root=project, mounts=mounts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(*command: str, at: Path) -> str:
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def result_of(
    browser: Browser, site: Server, path: str, options: str = "{}"
) -> dict[str, object]:
    with open_page(browser, site.url) as (page, watch):
        page.goto(f"{site.url}{path}")
        page.wait_for_function("() => typeof globalThis.run === 'function'")
        result = page.evaluate(f"run({options})")
        assert watch.complaints() == []
    return result


def test_vite(project: Path, browser: Browser, site: Server) -> None:
    run("npx", "vite", "build", "--base=./", at=project)
    assert len(list((project / "dist" / "assets").glob("*.whl"))) == 1
    assert result_of(browser, site, "dist/index.html") == EXPECTED


def test_esbuild(project: Path, browser: Browser, site: Server) -> None:
    out = project / "bundle"
    shutil.rmtree(out, ignore_errors=True)
    options = ["--bundle", "--splitting", "--format=esm", "--minify", "--outdir=bundle"]
    run("npx", "esbuild", "main.js", *options, at=project)
    (out / "index.html").write_text(PAGE)
    # esbuild does not know `new URL(file, import.meta.url)`: the page says where it is.
    (wheel,) = (project / "node_modules" / "dlpack-web" / "dist").glob("*.whl")
    shutil.copy(wheel, out / "dlpack_web.HASH.whl")
    where = '{ wheel: new URL("dlpack_web.HASH.whl", location).href }'
    assert result_of(browser, site, "bundle/index.html", where) == EXPECTED


def test_page_without_bundler(project: Path, browser: Browser, site: Server) -> None:
    package = project / "node_modules" / "dlpack-web"
    exports = json.loads((package / "package.json").read_text())["exports"]
    source = (SOURCES / "main.js").read_text()
    for name, file in exports.items():
        path = f'"../node_modules/dlpack-web/{file}"'
        source = source.replace(f'"dlpack-web{name.removeprefix(".")}"', path)
    plain = project / "plain"
    plain.mkdir(exist_ok=True)
    (plain / "main.js").write_text(source)
    (plain / "index.html").write_text(PAGE)
    assert result_of(browser, site, "plain/index.html") == EXPECTED


@pytest.mark.parametrize("resolution", ["bundler", "nodenext"])
def test_types_resolve(project: Path, resolution: str) -> None:
    config = {
        "compilerOptions": {
            "strict": True,
            "noEmit": True,
            "target": "ES2022",
            "lib": ["ES2022", "DOM"],
            "types": [],
            "module": "nodenext" if resolution == "nodenext" else "esnext",
            "moduleResolution": resolution,
        },
        "files": ["types.ts"],
    }
    file = project / f"tsconfig.{resolution}.json"
    file.write_text(json.dumps(config))
    run("npx", "tsc", "--project", file.name, at=project)


def test_adapters_are_shaken_from_the_tree(project: Path) -> None:
    """A page that imports one adapter does not download the others."""
    used = 'import { toArrow } from "dlpack-web/arrow"; console.log(toArrow);'
    unused = 'import { toJax } from "dlpack-web/jax";'
    (project / "shaken.js").write_text(used + unused)
    options = ["--bundle", "--format=esm", "--minify"]
    text = run("npx", "esbuild", "shaken.js", *options, at=project)
    assert "FixedSizeList" in text
    assert "jax-js" not in text
    assert "onnxruntime" not in text


def test_tarball_holds_what_it_should(project: Path) -> None:
    package = project / "node_modules" / "dlpack-web"
    files = {str(path.relative_to(package)) for path in package.rglob("*.*")}
    assert {"README.md", "package.json", "js/EXCHANGE.md"} <= files
    assert sum(name.endswith(".whl") for name in files) == 1
    kinds = {Path(name).suffix for name in files}
    assert kinds <= {".js", ".ts", ".map", ".json", ".md", ".whl"}
    for entry in json.loads((package / "package.json").read_text())["exports"].values():
        assert entry.removeprefix("./") in files
