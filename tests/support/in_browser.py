"""One browser and one server for all tests here, and the pages they open.

A missing Chromium fails the tests with what to install: a browser suite that skips
itself proves nothing. Missing WebGPU skips what needs it, with the reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "browser"
sys.path[:0] = [str(HERE / name) for name in ("hosts", "pages")]
pytest.register_assert_rewrite("page_checks")
from browser import (
    BrowserMissingError,
    Where,
    open_browser,
    open_page,
    where_it_should_be,
)
from crashes import pytest_sessionfinish  # noqa: F401, a hook
from file_server import MakingHandler
from onnx_models import OUTSIDE, WEIGHTS
from pages import TestPage, inside, pack_tests
from serve import SITE, Server

PYODIDES = ("pyodide", "pyodide-0.29")  # folders of the site; both load the same wheel
PAGES = pytest.StashKey[list[tuple[str, TestPage]]]()
# Tests that run with WHOLE=1 alone, as `make test-all` does: long ones, cases that the suite js runs over
# Dawn in Node, and all tests in the second Pyodide, which loads the same wheel and the same JavaScript.
LONG = re.compile(
    r"/test_\w+\.py::.*pyodide-0\.29|-tests/native/(files/|exchange/test_million)"
    r"|test_gpu_from_javascript\[pyodide-(batch|counter|elementwise|record|shader)_"
    r"|test_what_browsers_do_to_tests\[(again|twice|passes|others)"
    r"|test_the_first_use_gets_a_device\[(?!dlw\.empty|await dlw\.open)"
    r"|test_other_versions_and_builds\[(?!/older/onnxruntime-web/dist/ort\.webgpu)"
    r"|test_training_stops_and_starts_again|test_a_file_of_a_gibibyte"
    r"|test_faults_of_sessions\[(?!webgpu)"
)
type Opener = Callable[..., TestPage]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not (SITE / "wheel" / "wheel.json").is_file():
        pytest.fail("build/site is not complete: run `make test`, which builds it")
    bundle = tmp_path_factory.mktemp("bundle")
    pack_tests(bundle / "tests.zip", Path(pytest.__file__).resolve().parents[1])
    (bundle / "outside.onnx").write_bytes(OUTSIDE)
    (bundle / "weights.bin").write_bytes(WEIGHTS)
    mounts = {
        "/tests/": ROOT / "tests",
        "/packages/": ROOT / "packages",
        "/js-source/": ROOT / "js",
        "/patched/": ROOT / "build" / "patched" / "site",
        "/arrays/": ROOT / "build" / "arrays",
        "/example/": ROOT / "wasm" / "example",
        "/example-built/": ROOT / "build" / "example",
        "/bundle/": bundle,
        "/nodes/": ROOT / "build" / "nodes",
    }
    with Server(mounts=mounts, handler=MakingHandler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


OPEN: list[Browser] = []


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all folders of a run, whose fixtures these are."""
    if OPEN:
        yield OPEN[0]
        return
    try:
        with open_browser(["--js-flags=--expose-gc"]) as running:
            OPEN.append(running)
            yield running
            OPEN.clear()
    except BrowserMissingError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def packages() -> list[str]:
    """The modules of packages that connect() gets."""
    return []


@pytest.fixture(scope="session")
def pages_in(
    browser: Browser,
    server: Server,
    packages: list[str],
    request: pytest.FixtureRequest,
) -> Callable[[ExitStack], Opener]:
    """What opens pages with Pyodide and dlpack-web in them, until the stack ends."""
    wheel = json.loads((SITE / "wheel" / "wheel.json").read_text())["file"]
    kept = request.config.stash.setdefault(PAGES, [])

    def opener(stack: ExitStack) -> Opener:
        def start(
            pyodide: str | None = "pyodide",
            *,
            notebook: bool = False,
            numpy: bool = True,
            name: str = "",
            script: str = "",
            packages: list[str] = packages,
        ) -> TestPage:
            """`script` runs before the page's own, e.g. to take WebGPU away."""
            page, watch = stack.enter_context(open_page(browser, server.url))
            page.add_init_script(script)
            name = name or ("notebook.eval.html" if notebook else "strict.html")
            page.goto(f"{server.url}tests/browser/hosts/{name}")
            options = {
                "pyodideDir": pyodide and f"/{pyodide}/",
                "wheel": f"/wheel/{wheel}",
                "packages": packages,
                "notebook": notebook,
                "numpy": numpy,
                # It saves a third of the processor's time. WHOLE=1 starts Python without it.
                "snapshot": pyodide == "pyodide" and not os.environ.get("WHOLE"),
            }
            started = TestPage("/bundle/tests.zip", page, watch)
            # A page may have had WebGPU taken away from it.
            where = Where.of(page) if script else where_it_should_be(page)
            started.call("start", options)
            kept.append((f"{pyodide or 'a page without Python'} in {where}", started))
            return started

        return start

    return opener


@pytest.fixture
def open_test_page(pages_in: Callable[[ExitStack], Opener]) -> Iterator[Opener]:
    """Open pages that live until the test ends: 100 of them at once need 17 GB."""
    with ExitStack() as stack:
        yield pages_in(stack)


@pytest.fixture(scope="module")
def open_module_page(pages_in: Callable[[ExitStack], Opener]) -> Iterator[Opener]:
    """The same for the pages that the tests of a module share."""
    with ExitStack() as stack:
        yield pages_in(stack)


@pytest.fixture(scope="module", params=PYODIDES)
def strict_page(
    request: pytest.FixtureRequest, pages_in: Callable[[ExitStack], Opener]
) -> Iterator[TestPage]:
    """A page under the strict policy, for each Pyodide, set up by connect(); each module has its
    own, since the memory of WebAssembly never shrinks."""
    with ExitStack() as stack:
        yield pages_in(stack)(request.param)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what takes long, unless all is wanted."""
    if os.environ.get("WHOLE"):
        return
    out = [item for item in items if LONG.search(item.nodeid)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    pages = terminalreporter.config.stash.get(PAGES, [])
    for line in inside(pages):
        terminalreporter.write_line(line)
