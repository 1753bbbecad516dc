"""The modules of tests/browser/cases/py whose cases need no shader, or one that gpu_world.py
has in Python: conftest.py collects them."""

import sys

import pytest

if sys.platform == "emscripten":
    pytest.skip("the GPU of the page is at hand here", allow_module_level=True)

CASES = [
    "gpu_buffers",
    "gpu_cases",
    "gpu_devices",
    "gpu_errors",
    "gpu_files",
    "gpu_layouts",
    "gpu_padding",
    "gpu_reads",
    "gpu_same_bytes",
    "gpu_text",
    "gpu_upload",
]
