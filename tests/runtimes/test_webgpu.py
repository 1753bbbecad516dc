"""The cases of tests/browser, unchanged, where there is no browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import where_it_runs
from pages import CASES_JS, CASES_PY
from runtime import LAVAPIPE, SUITE, Driver, Runtime, Wanted, WrongRuntimeError


@pytest.mark.parametrize("file", SUITE["javascript"])
def test_cases_in_javascript(file: str, runtime: Runtime) -> None:
    runtime.cases(f"{CASES_JS}{file}").must_pass()
    assert runtime.call("complaints") == []


@pytest.mark.parametrize("file", SUITE["python"])
def test_cases_in_python(file: str, runtime: Runtime) -> None:
    runtime.pytest([f"{CASES_PY}{file}"]).must_pass()
    complaints = runtime.call("complaints")
    if file == "gpu_interrupts.py":
        # An interrupt in asyncio's code also rejects a promise that Pyodide's run_sync leaves.
        complaints = [each for each in complaints if "KeyboardInterrupt" not in each]
    assert complaints == []


def test_halves_are_computed_where_they_should_be(runtime: Runtime) -> None:
    """Lavapipe has shader-f16, and what needs it must not be skipped there."""
    assert ("shader-f16" in runtime.features) == (LAVAPIPE.name in runtime.name)
    assert runtime.python("""
import numpy as np
import dlpack_web as dlw

await dlw.webgpu.request_device()
x = dlw.from_dlpack(np.arange(5, dtype=np.float16)[::-1], device="webgpu")
y = dlw.empty(5, "float16", device="webgpu")
double = '''enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < 5) { y[id.x] = 2 * x[id.x] + 0.5h; }
}'''
try:
    dlw.webgpu.Kernel(double)(x, y, workgroups=1)
    told = (await y.to_host()).tolist()
except BufferError as error:
    told = "f16" in str(error) or str(error)
x.release(), y.release()
str(told)
""") == str([8.5, 6.5, 4.5, 2.5, 0.5] if "shader-f16" in runtime.features else True)


def test_where_it_runs(runtime: Runtime, request: pytest.FixtureRequest) -> None:
    row = request.node.callspec.params["runtime"]
    version = runtime.name.split(",")[0].replace("/", " ").replace(".js", "")
    where_it_runs.check(row, version, runtime.python(where_it_runs.FACTS))


def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    driver = Driver("lavapipe", tmp_path / "none.json", "mesa-vulkan-drivers", "")
    with pytest.raises(WrongRuntimeError, match="Debian's mesa-vulkan-drivers"):
        driver.environment()


RIGHT = {
    "agent": "Deno/2.9.6",
    "webgpu": "65541 llvmpipe",
    "compiler": 'expected global item, found "nonsense"',
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": "Deno/2.9.7"},
        {"webgpu": "NVIDIA GeForce"},
        {"webgpu": ""},
        {"compiler": "unexpected token"},
    ],
    ids=["version", "driver", "no WebGPU", "implementation"],
)
def test_another_runtime_or_driver_is_refused(wrong: dict[str, str]) -> None:
    wanted = Wanted("wgpu-core", LAVAPIPE, "Deno/2.9.6")
    assert wanted.complaint(RIGHT) is None
    assert "is for Deno/2.9.6, WebGPU: wgpu-core on lavapipe" in str(
        wanted.complaint(RIGHT | wrong)
    )


def test_a_listed_case_that_passes_is_refused() -> None:
    listed = Runtime("", None, "", {"case": "why"})  # type: ignore[arg-type]
    told = []
    for outcome in ("passed", "failed", "skipped"):
        for each in ("case", "other"):
            report = {"id": each, "outcome": outcome, "detail": ""}
            [kept] = listed._keep({"reports": [report]}).reports
            told.append((kept["outcome"], "why" in kept["detail"]))
    assert told == [
        ("failed", True),
        ("passed", False),
        ("skipped", True),
        ("failed", False),
        ("skipped", False),
        ("skipped", False),
    ]
