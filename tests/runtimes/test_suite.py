"""The JavaScript tests of tests/js, unchanged, in the runtimes that we test WebGPU in."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import SUITES
from runtime import DENO_OPTIONS, NODES, ROOT, SWIFTSHADER, deno_program, node_program

# Without those that bring a WebGPU of their own: the same cases are in test_webgpu.py.
FILES = sorted(
    str(path)
    for folder in (ROOT / "tests/js", *ROOT.glob("packages/*/tests/js"))
    for path in folder.rglob("*.test.mjs")
    if path.name != "webgpu.test.mjs"
)


def run(config: pytest.Config, name: str, *command: str | Path) -> list[int]:
    """What the command says of numbers in its last words; it must end well."""
    done = subprocess.run(
        [*command, *FILES],
        cwd=ROOT,
        env=os.environ | SWIFTSHADER.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    pattern = r"^ok \| (\d+) passed(?: \((\d+) steps\))?|^\S+ (?:pass|skipped) (\d+)$"
    found = [
        int(n)
        for each in re.findall(pattern, done.stdout, re.MULTILINE)
        for n in each
        if n
    ]
    config.stash.setdefault(SUITES, []).append(f"tests/js in {name}: {found}")
    return found


def test_suite_in_deno(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    options = [*DENO_OPTIONS, "--node-modules-dir=manual", "--no-check"]
    deno = ("env", f"DENO_DIR={tmp_path}", deno_program(), "test", *options)
    passed, steps = run(request.config, "Deno (tests, steps)", *deno)
    assert passed > 300
    assert steps > 50  # in suites: those with Pyodide


@pytest.mark.parametrize("release", NODES)
def test_suite_in_node(release: str, request: pytest.FixtureRequest) -> None:
    node = (node_program(release), "--test", "--test-reporter=tap")
    name = f"Node {release} (passed, skipped)"
    passed, skipped = run(request.config, name, *node)
    assert passed > 350
    # In Pyodide 0.29, which WHOLE adds: tests/js/pyodide/pyodide.test.mjs has the reason.
    assert skipped == (1 if os.environ.get("WHOLE") else 0)
