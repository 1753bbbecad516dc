"""The cases of tests/browser, unchanged, where there is no browser."""

from __future__ import annotations

import pytest
from runtime import Runtime

JAVASCRIPT = [
    "counter_cases.mjs",
    "cpu_cases.mjs",
    "exchange_cases.mjs",
    "fault_cases.mjs",
    "gpu_cases.mjs",
    "image_cases.mjs",
    "image_errors.mjs",
    "kernels_cases.mjs",
    "mishap_cases.mjs",
    "realm_cases.mjs",
    "shader_cases.mjs",
]
PYTHON = [
    "docstring_cases.py",
    "gpu_buffers.py",
    "gpu_cases.py",
    "gpu_errors.py",
    "gpu_faults.py",
    "gpu_interrupts.py",
    "gpu_kernels.py",
    "gpu_upload.py",
    "image_cases.py",
]


@pytest.mark.parametrize("file", JAVASCRIPT)
def test_cases_in_javascript(file: str, runtime: Runtime) -> None:
    runtime.cases(f"/tests/browser/{file}").must_pass()


@pytest.mark.parametrize("file", PYTHON)
def test_cases_in_python(file: str, runtime: Runtime) -> None:
    runtime.pytest([f"tests/browser/{file}"]).must_pass()
