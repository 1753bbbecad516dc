"""What dlw.features() says of pages, with WebGPU and without."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import where_it_runs
from browser import is_firefox
from pages import TestPage
from playwright.sync_api import Browser

FEATURES = "import json, dlpack_web as dlw\njson.dumps(dlw.features())"


@pytest.mark.parametrize("notebook", [False, True], ids=["strict", "notebook"])
def test_page_with_webgpu(
    notebook: bool, open_test_page: Callable[..., TestPage]
) -> None:
    page = open_test_page(notebook=notebook)
    told = page.page.evaluate(
        "async () => (await (await import('/js/webgpu/device/features.js')).features())"
    )
    assert isinstance(told["webgpu"]["adapter"], str)  # empty in Firefox
    assert told["webgpu"]["maxBufferSize"] >= 1 << 28
    flags = [told[name] for name in ("jspi", "using", "isolated", "worker")]
    assert flags == [True, True, True, False]
    assert told["unsafeEval"] is notebook
    found = json.loads(page.python(FEATURES))
    assert (found.pop("browser"), found.pop("canBlock")) == (True, True)
    assert found == told
    # Chromium tells the console that eval was tried where it is forbidden.
    assert all("unsafe-eval" in each for each in page.watch.complaints())


def test_where_it_runs(
    open_test_page: Callable[..., TestPage], browser: Browser
) -> None:
    page = open_test_page()  # of its own, for Firefox tells of the eval that was tried
    name = "firefox" if is_firefox() else "chromium"
    version = f"{name.capitalize()} {browser.version.split('.')[0]}"
    where_it_runs.check(name, version, page.python(where_it_runs.FACTS))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("delete Navigator.prototype.gpu", "no navigator.gpu"),
        ("GPU.prototype.requestAdapter = async () => null", "no adapter"),
    ],
    ids=["no navigator.gpu", "no adapter"],
)
def test_page_without_webgpu(
    script: str, reason: str, open_test_page: Callable[..., TestPage]
) -> None:
    page = open_test_page(notebook=True, script=script)
    assert reason in page.python(
        "import dlpack_web as dlw\ndlw.features()['webgpu']['reason']"
    )
    # Where Python cannot wait, no adapter is asked for.
    assert (
        page.python_sync("import dlpack_web as dlw\ndlw.features()['canBlock']")
        is False
    )
