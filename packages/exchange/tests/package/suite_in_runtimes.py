"""The suite in Deno and Bun: `make suite NAME=bundlers`. Not collected by itself."""

from __future__ import annotations

from pathlib import Path

from projects import SITE, program
from test_cli import CLI, tells_right_from_wrong

RUNTIMES = SITE.parent / "runtimes"


def test_suite_in_bun(tmp_path: Path) -> None:
    bun = program(RUNTIMES, "bun", "@oven/bun-*/bin/bun")
    tells_right_from_wrong(tmp_path, bun, CLI)


def test_suite_in_deno(tmp_path: Path) -> None:
    deno = program(RUNTIMES, "deno", "@deno/*/deno")
    allowed = ("run", "--no-prompt", "--allow-read", "--allow-env")
    tells_right_from_wrong(tmp_path, deno, *allowed, CLI)
