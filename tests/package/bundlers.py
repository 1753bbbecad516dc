"""The wheel as bundlers and their development servers have it: `make suite NAME=bundlers`.

Each is a user's page, made and served as its bundler does it. Not collected by itself.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from projects import ROOT, SITE, install, lay_out, run, shipped_wheel, unpack
from sites import found, says, single_page_site

VITES = ("vite-6", "vite-7", "vite-8")
EXCLUDED = {"optimizeDeps": {"exclude": ["dlpack-web"]}}


@pytest.fixture(scope="session")
def project() -> Path:
    """A project with the bundlers and the tarball in node_modules."""
    folder = install("bundlers")
    # Vite scans all pages in the folder: the page of an earlier run imports an older wheel.
    shutil.rmtree(folder / "example-vite-pyodide", ignore_errors=True)
    lay_out(folder, "wheel")
    return folder


@contextmanager
def vite_server(project: Path, name: str, config: dict[str, object]) -> Iterator[str]:
    shutil.rmtree(project / "node_modules" / f".{name}", ignore_errors=True)
    with subprocess.Popen(
        ["node", "vite.mjs", name, json.dumps(config)],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


@pytest.mark.parametrize("config", [{}, {"base": "/app/"}, EXCLUDED], ids=json.dumps)
@pytest.mark.parametrize("name", VITES)
def test_vite_serves_the_wheel(
    project: Path,
    browser: Browser,
    wheel_hash: str,
    name: str,
    config: dict[str, object],
) -> None:
    with vite_server(project, name, config) as url:
        assert found(browser, url) == wheel_hash


@pytest.mark.parametrize("name", VITES)
def test_vite_of_a_workspace_finds_it_or_says_what_helps(
    project: Path, browser: Browser, wheel_hash: str, name: str
) -> None:
    """The package lies above the served folder: nothing there says where."""
    app = project / "apps" / "one"
    lay_out(app, "wheel")
    (project / "pnpm-workspace.yaml").write_text("packages: []")  # its top, to Vite
    (app / "package.json").write_text('{"name": "one", "type": "module"}')
    config = {"root": str(app), "cacheDir": str(app / ".vite")}
    with vite_server(project, name, config) as url:
        told = found(browser, url)
        if name == "vite-8":  # what it moves to its cache still knows where files were
            assert told == wheel_hash
        else:
            assert "is an HTML page" in told
            assert 'optimizeDeps: { exclude: ["dlpack-web"] }' in told
    with vite_server(project, name, config | EXCLUDED) as url:
        assert found(browser, url) == wheel_hash


@pytest.mark.parametrize("name", VITES)
def test_vite_builds(
    project: Path, browser: Browser, wheel_hash: str, name: str
) -> None:
    vite = project / "node_modules" / name / "bin" / "vite.js"
    run("node", str(vite), "build", f"--outDir=out/{name}", at=project)
    with single_page_site(project / "out" / name) as url:
        assert found(browser, url) == wheel_hash


@pytest.mark.parametrize("name", VITES)
def test_vite_with_pyodide(project: Path, browser: Browser, name: str) -> None:
    """The example, served and built."""
    app = project / "example-vite-pyodide"
    shutil.rmtree(app, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "vite-pyodide", app)
    shutil.copytree(SITE / "pyodide", app / "public" / "pyodide")
    expected = "[[42.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"
    unpack(app)
    config = {"root": str(app), "cacheDir": str(app / ".vite")}
    with vite_server(project, name, config) as url:
        assert says(browser, url) == expected
    vite = project / "node_modules" / name / "bin" / "vite.js"
    run("node", str(vite), "build", "--base=./", at=app)
    with single_page_site(app / "dist") as url:
        assert says(browser, url) == expected


@pytest.mark.parametrize("name", VITES)
def test_vite_in_a_worker(
    project: Path, browser: Browser, wheel_hash: str, name: str
) -> None:
    app = project / "worker"
    lay_out(app, "worker", "wheel/found.js", "wheel/index.html")
    config = {"root": str(app), "cacheDir": str(project / "node_modules" / f".{name}")}
    with vite_server(project, name, config) as url:
        assert found(browser, url) == wheel_hash
    vite = project / "node_modules" / name / "bin" / "vite.js"
    run("node", str(vite), "build", f"--outDir=out/{name}", at=app)
    with single_page_site(app / "out" / name) as url:
        assert found(browser, url) == wheel_hash


def test_rollup(project: Path, browser: Browser, wheel_hash: str) -> None:
    """It has a plugin that knows `new URL(file, import.meta.url)`."""
    plugins = [
        "--plugin",
        "node-resolve",
        "--plugin",
        "@web/rollup-plugin-import-meta-assets",
    ]
    out = project / "out" / "rollup"
    run("npx", "rollup", "page.js", "--dir", str(out), "--silent", *plugins, at=project)
    shutil.copy(project / "index.html", out)
    with single_page_site(out) as url:
        assert found(browser, url) == wheel_hash


def test_rollup_without_the_plugin(
    project: Path, browser: Browser, wheel_hash: str
) -> None:
    out = project / "out" / "rollup-alone"
    run(
        "npx",
        "rollup",
        "page.js",
        "--dir",
        str(out),
        "--silent",
        "--plugin",
        "node-resolve",
        at=project,
    )
    shutil.copy(project / "index.html", out)
    with single_page_site(out) as url:
        assert "connect(pyodide, { wheel: url })" in found(browser, url)
        shutil.copy(shipped_wheel(project), out / "dlpack_web.whl")
        assert found(browser, url, '{ wheel: "dlpack_web.whl" }') == wheel_hash


@pytest.mark.parametrize("task", ["build", "serve"])
def test_parcel(project: Path, browser: Browser, wheel_hash: str, task: str) -> None:
    """It reads no `exports`, unless a project says so."""
    parcel = str(project / "node_modules" / "parcel" / "lib" / "bin.js")
    out = project / "out" / f"parcel-{task}"
    options = ["index.html", "--dist-dir", str(out), "--no-cache"]
    if task == "build":
        run("node", parcel, "build", *options, at=project)
        with single_page_site(out) as url:
            assert found(browser, url) == wheel_hash
        return
    command = ["node", parcel, "serve", *options, "--host", "127.0.0.1", "--no-hmr"]
    with subprocess.Popen(
        [*command, "--port", str(free_port()), "--no-autoinstall"],
        cwd=project,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        try:
            url = next(
                line.split()[-1] for line in server.stdout if "Server running" in line
            )
            assert found(browser, url) == wheel_hash
        finally:
            server.terminate()


def test_webpack(project: Path, browser: Browser, wheel_hash: str) -> None:
    out = project / "out" / "webpack"
    run("node", "webpack.mjs", str(out), at=project)
    page = (project / "index.html").read_text().replace("page.js", "main.js")
    (out / "index.html").write_text(page)
    with single_page_site(out) as url:
        assert found(browser, url) == wheel_hash


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
