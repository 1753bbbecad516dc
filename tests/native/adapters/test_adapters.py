"""dlpack_web.adapter where there is no JavaScript; in a page: tests/browser/libraries."""

import sys

import pytest
from conftest import run

import dlpack_web as dlw


@pytest.mark.skipif(sys.platform == "emscripten", reason="there is a browser here")
def test_adapters_need_a_browser():
    with pytest.raises(BufferError, match=r"^JavaScript is available only in Pyodide"):
        run(dlw.adapter("tfjs", None))
