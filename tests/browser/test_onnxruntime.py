"""`import onnxruntime`: scripts that nobody changed, natively and in the page, and the node tests of
the `onnx` package.

Natively they run with PyPI's onnxruntime, in the environment that makes the models.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import names
import node_native
import node_page
import numpy as np
import pytest
from browser import open_page
from node_table import FOLDER, SAMPLE
from pages import TestPage
from playwright.sync_api import Browser, Error
from reasons import reason
from serve import Server

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "build" / "models"
OLDER = ROOT / "build" / "older"
SCRIPTS = ROOT / "tests" / "foreign" / "onnxruntime"
PYTHON = ROOT / "build" / "model" / "venv" / "bin" / "python"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
PROVIDERS = {"cpu": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}

# How far results may be apart, absolutely and of the value, and why. Integers, bools and shapes are
# the same everywhere.
EXACT = (0.0, 0.0)
# Sums of up to 128 float32 products of about 1, in another order, and other exp() and erf().
FLOAT32 = (2e-5, 2e-5)
# Sums of up to 64 products, of which one side rounds each to float16 (11 bits) and one only the sum.
FLOAT16 = (3e-2, 1e-2)
# A hidden value that lies on the edge between two of 256 steps goes to the other one.
QUANTISED = (6e-2, 0.0)
# Subtracted, squared and summed in order: the same operations of IEEE 754, but for GPUs, whose
# square roots may be 3 units in the last place apart (WGSL, "Accuracy").
ROOTS = (0.0, 1e-6)
TOLERANCES = {
    "convolution": FLOAT32,
    "digits": FLOAT32,
    "dynamic": ROOTS,
    # Probabilities and sums of a few dozen products, in another order.
    "estimators": (1e-5, 1e-4),
    "external": FLOAT32,
    "float16": FLOAT16,
    "integers": FLOAT32,
    "interface": EXACT,
    "mistakes": FLOAT32,
    "quantised": QUANTISED,
    "several": EXACT,
    "transformer": FLOAT32,
    "unnamed": EXACT,
    # Distances of distances, six times.
    "values": (1e-5, 1e-5),
}


@dataclass
class Said:
    """What a script printed and saved."""

    text: str
    arrays: dict[str, np.ndarray]


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Said]:
    folder = tmp_path_factory.mktemp("models")
    for file in MODELS.iterdir():
        shutil.copy(file, folder)

    def run(name: str) -> Said:
        done = subprocess.run(
            [str(PYTHON), str(SCRIPTS / f"{name}.py"), PROVIDERS["cpu"]],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            # Scripts are run as they are, and leave nothing behind.
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert done.returncode == 0, done.stderr
        with np.load(folder / "outputs.npz") as saved:
            return Said(done.stdout, dict(saved))

    return run


RUN = """
import contextlib, io, json, os, runpy, sys

os.chdir("/models")
sys.argv = ["script.py", *{arguments}]
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    runpy.run_path("script.py", run_name="__main__")
del sys.argv[1:]
import base64
json.dumps([printed.getvalue(), base64.b64encode(open("outputs.npz", "rb").read()).decode()])
"""


@pytest.fixture(scope="module")
def page(open_module_page: Callable[..., TestPage]) -> TestPage:
    """A page where `import onnxruntime` works, with the models in a folder."""
    page = open_module_page()
    files = {path.name: list(path.read_bytes()) for path in MODELS.iterdir()}
    page.page.evaluate(
        """(files) => {
          const { FS } = harness.context.pyodide;
          FS.mkdirTree("/models");
          for (const [name, bytes] of Object.entries(files)) {
            FS.writeFile(`/models/${name}`, Uint8Array.from(bytes));
          }
        }""",
        files,
    )
    page.python("from dlpack_web import onnxruntime\nonnxruntime.install()")
    return page


def run_in(page: TestPage, name: str, provider: str) -> Said:
    source = (SCRIPTS / f"{name}.py").read_text()
    page.page.evaluate(
        "(text) => harness.context.pyodide.FS.writeFile('/models/script.py', text)",
        source,
    )
    said = page.python(RUN.replace("{arguments}", repr([provider])))
    text, encoded = json.loads(str(said))
    with np.load(io.BytesIO(base64.b64decode(encoded))) as saved:
        return Said(text, dict(saved))


def test_every_script_has_a_tolerance() -> None:
    assert set(NAMES) == set(TOLERANCES)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", NAMES)
def test_script_says_what_it_says_natively(
    name: str, provider: str, page: TestPage, native: Callable[[str], Said]
) -> None:
    expected = native(name)
    before = len(page.watch.complaints())
    if name == "float16" and provider == "webgpu" and not has_float16(page):
        with pytest.raises(Error, match="requires f16 but the device does not"):
            run_in(page, name, PROVIDERS[provider])
        pytest.skip("this GPU has no shader-f16: the error said so")
    said = run_in(page, name, PROVIDERS[provider])
    assert said.text == expected.text
    assert list(said.arrays) == list(expected.arrays)
    absolute, relative = TOLERANCES[name]
    for key, wanted in expected.arrays.items():
        array = said.arrays[key]
        assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape), key
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(array, wanted, relative, absolute, err_msg=key)
        elif name == "quantised":  # one of 256 steps
            assert np.abs(array.astype(int) - wanted).max() <= 1, key
        else:
            np.testing.assert_array_equal(array, wanted, err_msg=key)
    assert complaints(page, before, errors=name == "mistakes") == []


CASES = [
    f"tests/browser/onnxruntime_{name}.py" for name in ("cases", "errors", "values")
]
BUILDS = [
    "/older/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
    "/older/onnxruntime-web/dist/ort.all.bundle.min.mjs",  # with the older WebGPU backend
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
    older = json.loads((OLDER / "package.json").read_text())["dependencies"]
    assert (version == older["onnxruntime-web"]) == build.startswith("/older/")
    # Those with the older backend have float64 and ai.onnx.ml, and the others lack them.
    but = "build_lacks" if "ort.all" in build else "lists_of_dicts or build"
    page.pytest([*CASES, "-k", f"not ({but})"]).must_pass()


def has_float16(page: TestPage) -> bool:
    return bool(
        page.python("""
import dlpack_web as dlw
"shader-f16" in list((await dlw.webgpu.request_device()).gpu.features)
""")
    )


def complaints(page: TestPage, before: int, *, errors: bool) -> list[str]:
    """What the page complained of since then, but for onnxruntime's own log: that nodes run on
    the CPU, and the errors that a script is about."""
    logged = "[WE]:onnxruntime" if errors else "W:onnxruntime"
    return [
        each
        for each in page.watch.complaints()[before:]
        if not re.search(rf"\[{logged}", each)
    ]


def test_scripts_leave_no_tensor_behind(page: TestPage) -> None:
    run_in(page, "values", PROVIDERS["webgpu"])
    left = page.python("""
import gc, sys
import dlpack_web as dlw
# An exception that came out of a script holds what its frames hold.
for name in ("last_exc", "last_type", "last_value", "last_traceback"):
    vars(sys).pop(name, None)
gc.collect()
dlw.live_tensors()
""")
    assert left == 0


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
    assert names.PAGE.read_text() == text, "`make onnxruntime-names` writes it"
