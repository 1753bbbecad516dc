"""CPU tensors in WebKitGTK: `make suite NAME=webkit`. It has no WebGPU, no JSPI and no `using`.

Not collected by itself: `make test` is Chromium alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import where_it_runs
from browser import Watch, Where
from conftest import PAGES
from pages import TestPage
from selenium.webdriver import WebKitGTK, WebKitGTKOptions
from selenium.webdriver.webkitgtk.service import Service
from serve import SITE, Server
from test_in_pyodide import test_native_file_in_pyodide
from test_webgpu import test_shared_memory_from_javascript

# Selenium's own, in its constructor.
pytestmark = pytest.mark.filterwarnings("ignore:setting remote_server_addr")

__all__ = ["test_native_file_in_pyodide", "test_shared_memory_from_javascript"]
PYODIDES = ("pyodide", "pyodide-0.29")
SECONDS = 180
# The function and its argument, as Playwright's evaluate() takes them; errors as texts.
EVALUATE = """
const [source, argument, done] = arguments;
(async () => {
  try {
    done({ value: await (0, eval)(source)(argument) });
  } catch (error) {
    done({ error: `${error}\\n${error.stack}` });
  }
})();
"""


class Page:
    """As much of Playwright's page as TestPage needs."""

    def __init__(self, driver: WebKitGTK) -> None:
        self.driver = driver

    def evaluate(self, source: str, argument: object = None) -> Any:
        answer = self.driver.execute_async_script(EVALUATE, source, argument)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("value")


@pytest.fixture(scope="module")
def display() -> Iterator[None]:
    """A screen that nobody sees, where there is none."""
    if os.environ.get("DISPLAY"):
        yield
        return
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as pipe:
        os.environ["DISPLAY"] = f":{pipe.readline().strip()}"
    yield
    del os.environ["DISPLAY"]
    server.terminate()
    server.wait(10)


@pytest.fixture(scope="module")
def driver(display: None) -> Iterator[WebKitGTK]:
    program = shutil.which("WebKitWebDriver")
    browsers = sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))
    if program is None or not browsers:
        pytest.fail("no WebKitGTK: apt-get install webkit2gtk-driver", pytrace=False)
    # Containers have no user namespaces, of which its sandbox is made.
    environment = os.environ | {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    options = WebKitGTKOptions()
    options.binary_location = str(browsers[-1])
    options.add_argument("--automation")
    running = WebKitGTK(options, Service(program, env=environment))
    running.set_script_timeout(SECONDS)
    yield running
    running.quit()


@pytest.fixture(scope="module", params=PYODIDES)
def strict_page(
    request: pytest.FixtureRequest, driver: WebKitGTK, server: Server
) -> TestPage:
    """In place of conftest's, by its name: the tests that are imported ask for it."""
    request.config.stash.setdefault(PAGES, [])
    driver.get(f"{server.url}tests/browser/hosts/notebook.eval.html")
    wheel = json.loads((SITE / "wheel" / "wheel.json").read_text())["file"]
    page = TestPage("/bundle/tests.zip", Page(driver), Watch(server.url))
    where = Where.of(page.page)
    where.must_be("AppleWebKit", None)
    page.page.evaluate(
        """() => globalThis.harness
          ?? new Promise((resolve) => addEventListener("harness", () => resolve()))"""
    )
    options = {"pyodideDir": f"/{request.param}/", "wheel": f"/wheel/{wheel}"}
    page.call("start", options)
    request.config.stash[PAGES].append((f"{request.param} in {where}", page))
    return page


def test_where_it_runs(strict_page: TestPage, driver: WebKitGTK) -> None:
    version = f"WebKitGTK {driver.capabilities['browserVersion']}"
    told = strict_page.python(where_it_runs.FACTS)
    where_it_runs.check("webkitgtk", version, told)


def test_what_is_missing_is_told(strict_page: TestPage) -> None:
    told = strict_page.python("""
import json
import dlpack_web as dlw
json.dumps(dlw.features())
""")
    features = json.loads(str(told))
    assert not features["webgpu"]["available"]
    assert "no navigator.gpu" in features["webgpu"]["reason"]
    missing = [name for name in ("jspi", "using") if not features[name]]
    assert missing == ["jspi", "using"]
    message = strict_page.python("""
try:
    await dlw.webgpu.request_device()
    message = "nothing was raised"
except BufferError as error:
    message = str(error)
message
""")
    assert "WebGPU" in str(message)
