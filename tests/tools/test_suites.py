"""`make test-all` goes on after a suite that failed, and says so at its end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_all_suites_are_in_one_table(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "build" / "suites").mkdir(parents=True)
    (tmp_path / "build" / "suites" / "last.txt").write_text("of another run")

    def make(*names: str) -> tuple[int, list[str]]:
        runs = {"good": "true", "bad": "false", "last": "true"}
        variables = [f"RUN_{name}={run}" for name, run in runs.items()]
        done = subprocess.run(
            [
                "make",
                "--no-print-directory",
                "test-all",
                f"IN_ALL={' '.join(names)}",
                *variables,
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()[-len(names) :]

    good, bad, last = (
        f"[suite] {each}" for each in ("good: 0 s", "bad: failed", "last: 0 s")
    )
    assert make("good", "last") == (0, [good, last])
    assert make("bad", "good", "last") == (2, [bad, good, last])
    assert make("none") == (2, ["[suite] none: did not run"])
