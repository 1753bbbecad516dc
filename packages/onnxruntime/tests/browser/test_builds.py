"""dlpack_web_onnxruntime with other builds of onnxruntime-web, and operator tests of the `onnx` package.

Programs that others write for onnxruntime are in test_foreign_onnxruntime.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import onnxruntime_names as names
import pytest
from pages import TestPage

ROOT = Path(__file__).resolve().parents[4]
PYTHON = ROOT / "build" / "libs" / "bin" / "python"

CASES = [
    f"packages/onnxruntime/tests/cases/onnxruntime_{name}.py"
    for name in ("cases", "errors", "values")
]
BUILDS = [
    "/libraries/ort-1.26/ort.webgpu.bundle.min.mjs",
    "/libraries/ort-1.26/ort.all.bundle.min.mjs",  # with the older WebGPU backend
    "/libraries/ort/ort.all.bundle.min.mjs",
    "/libraries/ort/ort.jspi.bundle.min.mjs",
]


@pytest.mark.parametrize("build", BUILDS)
def test_other_versions_and_builds(
    build: str, open_test_page: Callable[..., TestPage]
) -> None:
    """The cases that test_webgpu.py has for the usual build of the newest version."""
    page = open_test_page()
    version = page.page.evaluate(
        """async (url) => {
          globalThis.ort = await import(url);
          const wasmPaths = new URL(".", new URL(url, location.href)).href;
          Object.assign(ort.env.wasm, { wasmPaths, numThreads: 1 });
          ort.env.logLevel = "error";
          return ort.env.versions.web;
        }""",
        build,
    )
    assert version.startswith("1.26.") == ("/ort-1.26/" in build)
    # Those with the older backend have float64 and ai.onnx.ml, and the others lack them.
    but = "build_lacks" if "ort.all" in build else "lists_of_dicts or build"
    page.pytest([*CASES, "-k", f"not ({but})"]).must_pass()


def test_operator_tests_of_onnx(open_test_page: Callable[..., TestPage]) -> None:
    cases = "packages/onnxruntime/tests/cases/onnxruntime_nodes.py"
    open_test_page().pytest([cases]).must_pass()


def test_every_name_of_onnxruntime_is_decided(
    open_test_page: Callable[..., TestPage],
) -> None:
    """There, without effect, refused in words, or absent for a reason; the page of the
    documentation says so (NAMES=write writes it)."""
    command = [PYTHON, Path(names.__file__)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    page = open_test_page()
    asked = json.loads(str(page.python(f"NAMES = {told['names']!r}\n{names.ASK}")))
    kinds = {kind for _, _, kind, _ in asked}
    assert kinds == {"there", "nothing", "refused", "absent"}
    absent = {name for _, name, kind, _ in asked if kind == "absent"}
    assert absent == {*names.ABSENT}
    text = names.page(told["version"], asked)
    if os.environ.get("NAMES") == "write":
        names.PAGE.write_text(text)
    assert names.PAGE.read_text() == text, "`make tables WHAT=onnxruntime` writes it"
