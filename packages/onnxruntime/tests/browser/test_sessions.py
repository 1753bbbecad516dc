"""Sessions in pages under the strict policy, whose connect() has the package."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx_models import doubling
from pages import TestPage


@pytest.mark.parametrize(
    "name",
    ["cases", "docstrings", "errors", "faults", "feeds", "libraries", "nan", "values"],
)
def test_sessions_from_python(name: str, strict_page: TestPage) -> None:
    strict_page.pytest(
        [f"packages/onnxruntime/tests/cases/onnxruntime_{name}.py"]
    ).must_pass()


def test_sessions_that_lose_what_they_need(
    open_test_page: Callable[..., TestPage],
) -> None:
    """A page of its own: onnxruntime-web has one device, and memory that grew stays."""
    open_test_page().pytest(
        ["packages/onnxruntime/tests/cases/onnxruntime_lost.py"]
    ).must_pass()


def test_faults_of_sessions_with_the_older_backend(
    open_test_page: Callable[..., TestPage],
) -> None:
    """It does not look whether a device has float16."""
    page = open_test_page()
    page.page.evaluate(
        """async () => {
          globalThis.ort = await import("/libraries/ort/ort.all.bundle.min.mjs");
          Object.assign(ort.env.wasm, { wasmPaths: "/libraries/ort/", numThreads: 1 });
          ort.env.logLevel = "error";
        }"""
    )
    page.pytest(["packages/onnxruntime/tests/cases/onnxruntime_faults.py"]).must_pass()


def test_synchronous_python_is_told_to_await_sessions(strict_page: TestPage) -> None:
    message = strict_page.python_sync("""
import dlpack_web_onnxruntime as ort

try:
    ort.InferenceSession(b"")
    message = "nothing was raised"
except RuntimeError as error:
    message = str(error)
message
""")
    assert "await InferenceSession.create(" in str(message)


DOUBLE = """
import json
from js import URL, fetch, location
from pyodide_js import loadPackage

wheel = json.loads(await (await fetch("/wheel/packages.json")).text())["dlpack-web-onnxruntime"]
await loadPackage(URL.new(f"/wheel/{wheel}", location.href).href)
import numpy as np
import dlpack_web_onnxruntime as ort

try:
    session = await ort.InferenceSession.create(bytes(MODEL))
    (said,) = await session.run_async(None, {"x": np.arange(3, dtype="float32")})
except ImportError as error:
    said = error
str(said)
"""


def test_python_evaluates_the_script_where_it_may(
    open_test_page: Callable[..., TestPage],
) -> None:
    """A notebook has no connect(); the script is evaluated once, though two copies of the library are loaded."""
    program = f"MODEL = {doubling()!r}\n{DOUBLE}"
    page = open_test_page(notebook=True)
    assert page.python(program) == "[0. 2. 4.]"
    assert (
        page.python(
            program.replace("MODEL)", "MODEL), providers=['CPUExecutionProvider']")
        )
        == "[0. 2. 4.]"
    )


def test_a_page_that_forbids_eval_is_told_to_hand_it_over(
    open_test_page: Callable[..., TestPage],
) -> None:
    page = open_test_page(packages=[])
    said = str(page.python(f"MODEL = {doubling()!r}\n{DOUBLE}"))
    assert "forbids eval, which `import dlpack_web_onnxruntime` needs" in said
    assert (
        "`connect(pyodide, { packages })` with that of `dlpack-web-onnxruntime/pyodide`"
        in said
    )
    page.page.evaluate("""async () => {
      const { onnxruntime } = await import("/packages-js/onnxruntime/pyodide.js");
      const { library, pyodide } = harness.context;
      await library.connect(pyodide, { packages: [onnxruntime] });
    }""")
    assert page.python(f"MODEL = {doubling()!r}\n{DOUBLE}") == "[0. 2. 4.]"
