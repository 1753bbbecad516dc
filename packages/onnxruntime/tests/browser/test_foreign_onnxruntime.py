"""Programs that others write for PyPI's onnxruntime (tests/foreign/onnxruntime), natively and in the page, no line
changed.

Natively they run with PyPI's onnxruntime, in the environment that makes the models. Programs that
read sys.argv take their provider from it, and run with both in the page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import comparing
import foreign_results as results
import pytest
from comparing import Close
from pages import TestPage

PACKAGE = Path(__file__).resolve().parents[2]
ROOT = PACKAGE.parents[1]
MODELS = ROOT / "build" / "models"
ARRAYS = ROOT / "build" / "arrays"
FOREIGN = PACKAGE / "tests" / "foreign"
PROGRAMS = {
    path.stem: path
    for path in sorted(
        (FOREIGN / "onnxruntime").glob("*/*.py"), key=lambda path: path.stem
    )
}
RUNNER = sorted((FOREIGN / "runner").glob("*.py"))
PYTHON = ROOT / "build" / "libs" / "bin" / "python"
PROVIDERS = {"cpu": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}
LISTED = comparing.listed(FOREIGN / "different.toml")

# How far results may be apart, and why. Integers, bools and shapes are the same everywhere.
EXACT = Close()
# Sums of up to 128 float32 products of about 1, in another order, and other exp() and erf().
FLOAT32 = Close(2e-5, 2e-5)
TOLERANCES = {
    # Subtracted, squared and summed in order: the same operations of IEEE 754, but for GPUs, whose
    # square roots may be 3 units in the last place apart (WGSL, "Accuracy").
    "dynamic": Close(0, 1e-6),
    # Probabilities and sums of a few dozen products, in another order.
    "estimators": Close(1e-5, 1e-4),
    # Sums of up to 64 products, of which one side rounds each to float16 (11 bits) and one only
    # the sum.
    "float16": Close(3e-2, 1e-2),
    "interface": EXACT,
    # A hidden value that lies on the edge between two of 256 steps goes to the other one.
    "quantised": Close(6e-2, 0, steps=1),
    "several": EXACT,
}


def runs() -> Iterator[tuple[str, str]]:
    """Programs and providers."""
    for name, path in PROGRAMS.items():
        both = "sys.argv" in path.read_text()
        yield from ((name, provider) for provider in (PROVIDERS if both else ["cpu"]))


RUNS = list(runs())


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    folder = tmp_path_factory.mktemp("models")
    for file in MODELS.iterdir():
        shutil.copy(file, folder)
    said: dict[str, str] = {}

    def run(name: str) -> str:
        if name not in said:
            runner, program = FOREIGN / "runner" / "program.py", PROGRAMS[name]
            done = subprocess.run(
                [PYTHON, runner, program, "said.json", PROVIDERS["cpu"]],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
                # Programs are run as they are, and leave nothing behind.
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            )
            assert done.returncode == 0, done.stderr
            said[name] = (folder / "said.json").read_text()
        return said[name]

    return run


RUN = """
import os, sys

os.chdir("/models")
if "/runner" not in sys.path:
    sys.path.append("/runner")
import program

program.run("/programs/{name}.py", {arguments})
"""


@pytest.fixture(scope="module")
def page(open_module_page: Callable[..., TestPage]) -> TestPage:
    """A page where `import onnxruntime` works, with the models in a folder."""
    page = open_module_page()
    put(page, "/models", MODELS.iterdir())
    put(page, "/runner", RUNNER)
    wheels = [f"/arrays/{path.name}" for path in ARRAYS.glob("pillow-*.whl")]
    assert wheels, (
        f"{ARRAYS} has no wheel of Pillow: `make suite NAME=onnxruntime` fetches it"
    )
    page.python(f"""
from pyodide_js import loadPackage

await loadPackage({wheels})
import dlpack_web_onnxruntime as onnxruntime

onnxruntime.install()
""")
    return page


def put(page: TestPage, folder: str, paths: Iterator[Path] | list[Path]) -> None:
    """Files into a folder of Pyodide's."""
    page.page.evaluate(
        """([folder, files]) => {
          const { FS } = harness.context.pyodide;
          FS.mkdirTree(folder);
          for (const [name, bytes] of Object.entries(files)) {
            FS.writeFile(`${folder}/${name}`, Uint8Array.from(bytes));
          }
        }""",
        [folder, {path.name: list(path.read_bytes()) for path in paths}],
    )


def run_in(page: TestPage, name: str, provider: str) -> str:
    put(page, "/programs", [PROGRAMS[name]])
    run = RUN.format(name=name, arguments=[PROVIDERS[provider]])
    return str(page.python(run))


@pytest.fixture(scope="module")
def renewed() -> Iterator[dict[results.Key, list[str]]]:
    """The lines of RESULTS.md, which are written with FOREIGN=write."""
    found: dict[results.Key, list[str]] = {}
    yield found
    if os.environ.get("FOREIGN") == "write":
        results.RESULTS.write(found, results.programs())


@pytest.mark.parametrize(("name", "provider"), RUNS)
def test_program_says_what_it_says_natively(
    name: str,
    provider: str,
    page: TestPage,
    native: Callable[[str], str],
    renewed: dict[results.Key, list[str]],
) -> None:
    expected = native(name)
    before = len(page.watch.complaints())
    said = run_in(page, name, provider)
    if name == "float16" and provider == "webgpu" and not has_float16(page):
        assert "requires f16 but the device does not" in said
        pytest.skip("this GPU has no shader-f16: the error said so")
    compared = comparing.compare(expected, said, TOLERANCES.get(name, FLOAT32))
    entries = [each for each in LISTED if each.is_of(f"onnxruntime/{name}", provider)]
    left, stale = comparing.unlisted(compared, entries)
    assert left == [], "\n".join(f"{each.name}: {each.why}" for each in left)
    assert stale == [], "listed, and the same"
    assert complaints(page, before) == []
    if name == "float16" and provider == "webgpu":
        return  # the table is of machines without it, too
    key = (f"onnxruntime/{name}", provider)
    renewed[key] = results.lines_of(key, compared)
    if os.environ.get("FOREIGN") != "write":
        old = "`make tables WHAT=foreign` writes it"
        assert results.RESULTS.parsed().get(key) == renewed[key], old


def has_float16(page: TestPage) -> bool:
    return bool(
        page.python("""
import dlpack_web as dlw
"shader-f16" in list((await dlw.webgpu.request_device()).gpu.features)
""")
    )


def complaints(page: TestPage, before: int) -> list[str]:
    """What the page complained of since then, but for onnxruntime's own log."""
    return [
        each
        for each in page.watch.complaints()[before:]
        if not re.search(r"\[[WE]:onnxruntime", each)
    ]


def test_programs_leave_no_tensor_behind(page: TestPage) -> None:
    run_in(page, "io_bindings", "webgpu")
    left = page.python("""
import gc, sys
import dlpack_web as dlw
# An exception that came out of a program holds what its frames hold.
for name in ("last_exc", "last_type", "last_value", "last_traceback"):
    vars(sys).pop(name, None)
gc.collect()
dlw.live_tensors()
""")
    assert left == 0
