"""WebGPU and shared memory in the page, from Python and from JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PYODIDES
from pages import CASES_JS, CASES_PY, TestPage


def test_shared_memory_from_javascript(strict_page: TestPage) -> None:
    strict_page.cases(f"{CASES_JS}cpu_cases.mjs").must_pass()


CASES = Path(__file__).parents[1] / "cases" / "py"
FILES = {path.name for path in CASES.glob("*_cases.py")}
FILES |= {path.name for path in CASES.glob("gpu_*.py")}


@pytest.mark.parametrize("file", sorted(FILES - {"gpu_fixtures.py", "gpu_world.py"}))
def test_gpu_from_python(file: str, strict_page: TestPage) -> None:
    strict_page.pytest([f"{CASES_PY}{file}"]).must_pass()


@pytest.mark.parametrize("pyodide", PYODIDES)
def test_wasm_memory_that_is_full(
    pyodide: str, open_test_page: Callable[..., TestPage]
) -> None:
    """A page of its own: memory that grew stays."""
    open_test_page(pyodide).pytest(
        ["tests/browser/cases/py/memory_full.py"]
    ).must_pass()


@pytest.mark.parametrize(
    "file",
    [
        "batch_cases.mjs",
        "cache_cases.mjs",
        "counter_cases.mjs",
        "elementwise_cases.mjs",
        "fault_cases.mjs",
        "file_cases.mjs",
        "frames_cases.mjs",
        "gpu_cases.mjs",
        "image_cases.mjs",
        "image_errors.mjs",
        "mishap_cases.mjs",
        "picture_cases.mjs",
        "realm_cases.mjs",
        "record_cases.mjs",
        "shader_cases.mjs",
    ],
)
def test_gpu_from_javascript(file: str, strict_page: TestPage) -> None:
    strict_page.cases(f"{CASES_JS}{file}").must_pass()


def test_synchronous_python_is_told_to_await(strict_page: TestPage) -> None:
    """Without JSPI below it Python cannot wait: the error names what can."""
    strict_page.python("""
import dlpack_web as dlw
await dlw.webgpu.request_device()
""")
    message = strict_page.python_sync("""
import numpy as np
import dlpack_web as dlw

with dlw.empty(3, device="webgpu") as tensor:
    try:
        np.asarray(tensor)
        message = "nothing was raised"
    except BufferError as error:
        message = str(error)
message
""")
    assert "to_host()" in str(message)


NO_ADAPTER = "GPU.prototype.requestAdapter = async () => null"
NO_WEBGPU = "delete Navigator.prototype.gpu"
ASK = """
import dlpack_web as dlw

try:
    await dlw.webgpu.request_device()
    message = "nothing was raised"
except BufferError as error:
    message = str(error)
message
"""
ASK_JS = """
from js import harness
from pyodide.ffi import JsException

try:
    await harness.context.library.webgpu.requestDevice()
    message = "nothing was raised"
except JsException as error:
    message = f"{error.name}: {error.message}"
message
"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [(NO_ADAPTER, "no adapter"), (NO_WEBGPU, "no WebGPU")],
    ids=["no adapter", "no navigator.gpu"],
)
def test_missing_webgpu_says_what_to_do(
    script: str, expected: str, open_test_page: Callable[..., TestPage]
) -> None:
    page = open_test_page(script=script)
    assert expected in str(page.python(ASK))
    from_js = str(page.python(ASK_JS))
    assert from_js.startswith("DeviceError")
    assert expected in from_js


def test_a_chunk_that_does_not_load_spoils_nothing_else(
    open_test_page: Callable[..., TestPage],
) -> None:
    """What is loaded late only words errors better, or is asked for again."""
    page = open_test_page(None)
    page.page.route("**/lazy.js", lambda route: route.abort())
    found = page.page.evaluate("""async () => {
      const { webgpu, Tensor } = harness.context.library;
      const told = [];
      await webgpu.requestDevice().catch((error) => told.push(error.message));
      const PAGE = Symbol.for("dlpack.device");
      await webgpu.pageDevice().catch((error) => told.push(error.message));
      const left = [typeof globalThis[PAGE]];
      const theirs = await (await navigator.gpu.requestAdapter()).requestDevice();
      globalThis[PAGE] = theirs;
      await webgpu.pageDevice().catch((error) => told.push(error.message));
      left.push(globalThis[PAGE] === theirs);
      delete globalThis[PAGE];
      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      const host = Tensor.fromTypedArray(Float32Array.of(1, 2));
      const [good, bad] = [host.to(device), host.to(device)];
      const wgsl = (body) => `
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn main() { ${body} }`;
      const kernel = new webgpu.Kernel(device, wgsl("x[0] = wrong;"), { label: "spoilt" });
      kernel.run([bad], { workgroups: 1 });
      new webgpu.Kernel(device, wgsl("x[0] = 7;")).run([good], { workgroups: 1 });
      await bad.read().catch((error) => told.push(`${error.name}: ${error.message}`));
      const read = [];
      for (let i = 0; i < 2; i++) read.push([...(await good.read())]);
      for (const tensor of [host, good, bad]) tensor.release();
      return { told, read, left };
    }""")
    assert found["read"] == [[7, 2], [7, 2]]
    asked, *of_the_page, of_the_kernel = found["told"]
    assert "lazy.js" in asked
    assert of_the_page == [asked, asked]
    assert found["left"] == ["undefined", True]
    assert "spoilt" in of_the_kernel
    page.page.unroute("**/lazy.js")
    assert page.page.evaluate(
        "harness.context.library.webgpu.requestDevice().then(() => 'a device',"
        "(error) => error.message)"
    ) in ("a device", asked)  # Firefox keeps in mind that a module did not load


def test_upload_before_any_device(open_test_page: Callable[..., TestPage]) -> None:
    upload = """
import numpy as np
import dlpack_web as dlw

with dlw.from_dlpack(np.zeros(3)) as tensor:
    try:
        tensor.to_device("webgpu")
        message = "nothing was raised"
    except BufferError as error:
        message = str(error)
message
"""
    page = open_test_page()
    message = str(page.python_sync(upload))
    assert "no WebGPU device is registered" in message
    assert "await dlpack_web.webgpu.request_device()" in message


USE = """
import numpy as np
import js
import dlpack_web as dlw

{}
[row["device"] for row in dlw.webgpu.stats()]
"""


@pytest.mark.parametrize(
    "use",
    [
        'dlw.from_dlpack(np.zeros(3), device="webgpu")',
        'dlw.empty(3, device="webgpu")',
        'await dlw.open(bytes(8), dtype="float32", device="webgpu")',
        "await dlw.webgpu.from_image(js.ImageData.new(2, 2))",
        'await dlw.webgpu.Kernel("@compute @workgroup_size(1) fn main() {}").ready()',
        'await (await dlw.adapter("ndarray", None)).use_device()',
    ],
)
def test_the_first_use_gets_a_device(
    use: str, open_test_page: Callable[..., TestPage]
) -> None:
    page = open_test_page()
    if "use_device" in use:  # zarrita's arrays are on no device, after one was found
        use = f"try: {use}\nexcept TypeError: pass"
    assert list(page.python(USE.format(use))) == ["webgpu:0"]
    assert list(page.python(USE.format("await dlw.webgpu.request_device()"))) == [
        "webgpu:0"
    ]


def test_a_file_of_a_gibibyte(open_test_page: Callable[..., TestPage]) -> None:
    """A page of its own, whose memory has not grown yet."""
    open_test_page().pytest(["tests/browser/cases/py/large_files.py"]).must_pass()
