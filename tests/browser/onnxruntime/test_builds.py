"""dlpack_web.onnxruntime with other builds of onnxruntime-web, and the node tests of the `onnx` package.

Programs that others write for onnxruntime are in test_foreign_onnxruntime.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import names
import node_native
import node_page
import pytest
from browser import open_page
from node_table import FOLDER, SAMPLE
from pages import TestPage
from playwright.sync_api import Browser
from reasons import reason
from serve import Server

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / "build" / "libs" / "bin" / "python"
PROVIDERS = {"cpu": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}

CASES = [
    f"tests/browser/onnxruntime/onnxruntime_{name}.py"
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


# --- the node tests of the package onnx ---------------------------------------------------

SAMPLED: dict[str, dict[str, str]] = json.loads(SAMPLE.read_text())
SAMPLE_S = (
    120  # a bound for each provider: where little else runs they take a sixth of it
)


def worse(outcomes: dict[str, list[str]], home: str) -> dict[str, str]:
    """What passed when the table was written, and does not."""
    return {
        name: f"{reason(*outcome)}: {outcome[1]}"
        for name, outcome in outcomes.items()
        if SAMPLED[name][home] == "passed" and outcome[0] != "passed"
    }


def test_node_tests_pass_natively_as_the_table_says() -> None:
    outcomes = dict(node_native.run(PYTHON, FOLDER, PROVIDERS["cpu"], SAMPLED))
    assert worse(outcomes, "native") == {}


WORKER = """#!/bin/sh
while read name; do
  case $name in
    dies) exit 3 ;;
    hangs) exec cat >/dev/null ;;
    *) echo '["passed", ""]' ;;
  esac
done
"""


def test_a_worker_that_dies_or_hangs_is_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "python"
    fake.write_text(WORKER)
    fake.chmod(0o755)
    monkeypatch.setattr(node_native, "LIMIT_S", 1)
    names = ["one", "dies", "two", "hangs", "three"]
    assert dict(node_native.run(fake, tmp_path, "any", names)) == {
        "one": ["passed", ""],
        "dies": ["died", "exit status 3"],
        "two": ["passed", ""],
        "hangs": ["hung", "no answer within 1 s"],
        "three": ["passed", ""],
    }


@pytest.mark.parametrize("provider", PROVIDERS)
def test_node_tests_pass_in_the_page_as_the_table_says(
    provider: str, browser: Browser, server: Server
) -> None:
    # The first of them ends its worker, and the next one has another.
    names = ["there is none of this name", *SAMPLED]
    with open_page(browser, server.url) as (page, _):
        run = node_page.run(page, server.url, PROVIDERS[provider], names, SAMPLE_S)
        outcomes = dict(run)
    assert outcomes.pop(names[0])[0] == "died"
    assert worse(outcomes, provider) == {}
    # However slow the machine is, most of them were run.
    assert len(outcomes) > len(SAMPLED) / 2


def test_every_name_of_onnxruntime_is_decided(
    open_test_page: Callable[..., TestPage],
) -> None:
    """There, without effect, refused in words, or absent for a reason; the page of the
    documentation says so (NAMES=write writes it)."""
    command = [PYTHON, ROOT / "tests" / "models" / "names.py"]
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
