"""The wheel as Deno and Bun have it: `make suite NAME=bundlers`. Not collected by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import SITE, lay_out, program, run, unpack


@pytest.fixture(scope="session")
def project() -> Path:
    return SITE.parent / "runtimes"


@pytest.fixture(params=["plain", "a blank, 100%20 ümläut #1 [x]"])
def user(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A user's project, in folders of any name."""
    folder = tmp_path / request.param
    lay_out(folder, "wheel", "package.json")
    unpack(folder)
    return folder


def test_bun(project: Path, user: Path, wheel_hash: str) -> None:
    bun = program(project, "bun", "@oven/bun-*/bin/bun")
    assert run(bun, "run", "run.js", at=user).strip() == wheel_hash


def test_deno(project: Path, user: Path, wheel_hash: str) -> None:
    deno = program(project, "deno", "@deno/*/deno")
    here = ("run", "--no-prompt", "--allow-read=.", "run.js")
    assert run(deno, *here, at=user).strip() == wheel_hash


def test_bridge_in_bun(project: Path, user: Path) -> None:
    bun = program(project, "bun", "@oven/bun-*/bin/bun")
    pyodide = str(SITE / "pyodide")
    assert run(bun, "run", "pyodide.js", pyodide, at=user).split() == ["xbc", "0"]


def test_bridge_in_deno(project: Path, user: Path) -> None:
    deno = program(project, "deno", "@deno/*/deno")
    command = ("run", "--no-prompt", "--allow-read", "--allow-env", "pyodide.js")
    pyodide = str(SITE / "pyodide")
    assert run(deno, *command, pyodide, at=user).split() == ["xbc", "0"]


def test_deno_without_permission_is_told(project: Path, user: Path) -> None:
    deno = program(project, "deno", "@deno/*/deno")
    assert "run again with the --allow-read flag" in run(
        deno, "run", "--no-prompt", "run.js", at=user
    )
