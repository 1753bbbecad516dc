"""The Python tests of tests/native, unchanged, inside Pyodide in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import TestPage

TESTS = Path(__file__).resolve().parents[2]
FILES = sorted(
    path.relative_to(TESTS.parent).as_posix()
    for path in TESTS.glob("native/*/test_*.py")
)


@pytest.mark.parametrize("path", FILES)
def test_native_file_in_pyodide(path: str, strict_page: TestPage) -> None:
    outcome = strict_page.pytest([path])
    outcome.must_pass()
    for report in outcome.of("skipped"):
        assert report["detail"], f"{report['id']} skips without a reason"
    assert strict_page.watch.complaints() == []


@pytest.fixture(scope="module")
def notebook(open_module_page: Callable[..., TestPage]) -> TestPage:
    return open_module_page(notebook=True)


def test_notebook_import_alone_shares_memory(notebook: TestPage) -> None:
    """No connect(): the wheel brings its JavaScript, where eval is allowed."""
    assert notebook.python("""
import numpy as np
import dlpack_web as dlw

array = np.arange(6, dtype=np.float32)
with dlw.from_dlpack(array) as tensor:
    view = tensor.js.data
    view[2] = 40.0
    shared = view.byteOffset == array.ctypes.data and array[2] == 40
shared and dlw.live_tensors() == 0
""")
    assert notebook.watch.complaints() == []


def test_notebook_import_reaches_the_gpu(notebook: TestPage) -> None:
    assert notebook.python("""
import numpy as np
import dlpack_web as dlw

await dlw.webgpu.request_device()
array = np.arange(7, dtype=np.uint8)
with dlw.from_dlpack(array) as host, host.to_device("webgpu") as tensor:
    back = await tensor.to_host()
bool((back == array).all())
""")
    assert notebook.watch.complaints() == []


def test_connect_joins_what_the_import_began(notebook: TestPage) -> None:
    """Two copies of the JavaScript, the wheel's and the site's: one state."""
    assert notebook.page.evaluate("""async () => {
      const { pyodide } = harness.context;
      const { connect, Tensor } = await import("/js/index.js");
      const bridge = await connect(pyodide);
      const proxy = pyodide.runPython(
        "import dlpack_web as dlw\\nkept = dlw.empty(3, 'int32')\\nkept",
      );
      const [ours, theirs] = [bridge.tensor(proxy), proxy.js];
      ours.data[1] = 7;
      const shared = theirs.data[1] === 7 && !(theirs instanceof Tensor);
      const again = bridge.tensor(theirs);
      const seen = again.at(1);
      for (const tensor of [ours, again]) tensor.release();
      pyodide.runPython("kept.release()");
      proxy.destroy();
      return shared && seen === 7 && (await connect(pyodide)) === bridge;
    }""")
    assert notebook.watch.complaints() == []


def test_import_without_eval_names_connect(
    open_test_page: Callable[..., TestPage],
) -> None:
    """Under the strict policy the wheel's JavaScript cannot run: say what to do."""
    page = open_test_page(notebook=True, name="strict.html")
    message = page.python("""
import numpy as np
import dlpack_web as dlw

tensor = dlw.from_dlpack(np.arange(3))
try:
    tensor.js
    message = "nothing was raised"
except Exception as error:
    message = f"{type(error).__name__}: {error}"
tensor.release()
message
""")
    assert "connect(pyodide)" in str(message)
