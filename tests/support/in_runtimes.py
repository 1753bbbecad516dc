"""A server like the browser tests', and the runtimes that are asked for: in `make
test-deno` those of Deno, in `make suite NAME=node-gpu` Node's."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("browser/hosts", "runtimes")]
from pages import inside, pack_tests
from runtime import (
    ARCH,
    LAVAPIPE,
    SWIFTSHADER,
    Runtime,
    bun,
    closing,
    deno,
    node,
)
from serve import SITE, Server

SUITES = pytest.StashKey[list[str]]()
KEPT = pytest.StashKey[list[tuple[str, Runtime]]]()
RUNTIMES = {
    "deno-lavapipe": (deno, LAVAPIPE),
    "deno-swiftshader": (deno, SWIFTSHADER),
    # Dawn refuses Debian 12's lavapipe, which lacks a feature.
    "node-swiftshader": (partial(node, "24"), SWIFTSHADER),
    "node-26-swiftshader": (partial(node, "26"), SWIFTSHADER),
}
if ARCH == "x64":  # bun-webgpu has no other for Linux
    RUNTIMES["bun-swiftshader"] = (bun, SWIFTSHADER)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not (SITE / "wheel" / "wheel.json").is_file():
        pytest.fail(
            "build/site is not complete: run `make suite NAME=deno`, which builds it"
        )
    bundle = tmp_path_factory.mktemp("bundle")
    pack_tests(bundle / "tests.zip", Path(pytest.__file__).resolve().parents[1])
    mounts = {"/tests/": ROOT / "tests", "/js-source/": ROOT / "js", "/bundle/": bundle}
    with Server(mounts=mounts) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.url
        running.shutdown()


@pytest.fixture(scope="session", params=RUNTIMES)
def runtime(
    url: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runtime]:
    start, driver = RUNTIMES[request.param]
    wheel = json.loads((SITE / "wheel" / "wheel.json").read_text())["file"]
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        started = stack.enter_context(closing(start(driver, url, folder)))
        options = {"pyodideDir": "/pyodide/", "wheel": f"/wheel/{wheel}"}
        started.call("start", options | {"root": str(SITE)})
        kept = request.config.stash.setdefault(KEPT, [])
        kept.append((f"pyodide in {started.name}", started))
        yield started


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(SUITES, []):
        terminalreporter.write_line(line)
    for line in inside(terminalreporter.config.stash.get(KEPT, [])):
        terminalreporter.write_line(line)
