"""The cases of WebGPU one by one, in a page that they share: `make mutants` chooses those that run a
line (tests/mutants/js_chromium.py). `make test` runs them by the file, in test_webgpu.py.

A page without Python is there in a second. The cases that need Python run in the other one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pages import CASES_JS, CASES_PY, TestPage

ROOT = Path(__file__).resolve().parents[3]
# They have workers and pages of their own, or measure memory that is full.
LEFT_OUT = {
    "worker.mjs",
    "worker_cases.mjs",
    "expect.mjs",
    "images.mjs",
    "using.mjs",
    "arrow_cases.mjs",
}
# They fill the memory, or count over minutes.
SLOW = re.compile(
    "ten_thousand|come_and_go|large_uploads|the_largest|one_byte_more|more_than_one_buffer"
)
IN_PYTHON = [
    "gpu_buffers.py",
    "gpu_cases.py",
    "gpu_devices.py",
    "gpu_errors.py",
    "gpu_faults.py",
    "gpu_files.py",
    "gpu_kernels.py",
    "gpu_padding.py",
    "gpu_reads.py",
    "gpu_same_bytes.py",
    "gpu_upload.py",
    "gpu_waits.py",
    "image_cases.py",
    "frames_cases.py",
]


def names(file: Path) -> list[str]:
    """What a file of cases exports, or a file of Python has as tests."""
    found = re.findall(
        r"^(?:export (?:async )?function|(?:async )?def(?= test_)) (\w+)",
        file.read_text(),
        re.MULTILINE,
    )
    return [f"{file.name}::{name}" for name in found if not SLOW.search(name)]


def in_javascript(*words: str) -> list[str]:
    """The cases of those files that have one of the words."""
    files = sorted((ROOT / CASES_JS.strip("/")).glob("*.mjs"))
    return [
        name
        for file in files
        if file.name not in LEFT_OUT and any(word in file.read_text() for word in words)
        for name in names(file)
    ]


@pytest.fixture(scope="module")
def bare_page(
    pages_in: Callable[[ExitStack], Callable[..., TestPage]],
) -> Iterator[TestPage]:
    """Without Python. It allows eval: cases run the snippets of js/EXCHANGE.md."""
    with ExitStack() as stack:
        yield pages_in(stack)(None, name="notebook.eval.html")


def run_case(page: TestPage, case: str) -> None:
    file, _, name = case.partition("::")
    outcome = page.cases(f"{CASES_JS}{file}", name)
    outcome.must_pass()
    if not outcome.of("passed"):
        pytest.skip("it needs something that the page lacks")


@pytest.mark.parametrize("case", in_javascript(""))
def test_without_python(case: str, bare_page: TestPage) -> None:
    run_case(bare_page, case)


@pytest.mark.parametrize("case", in_javascript("pyodide", "bridge"))
def test_with_python(case: str, strict_page: TestPage) -> None:
    run_case(strict_page, case)


@pytest.mark.parametrize(
    "case", [name for file in IN_PYTHON for name in names(ROOT / CASES_PY / file)]
)
def test_in_python(case: str, strict_page: TestPage) -> None:
    strict_page.pytest([f"{CASES_PY}{case}"]).must_pass()
