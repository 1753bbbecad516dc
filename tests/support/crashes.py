"""For a conftest.py: runs a file again, once, in which a renderer crashed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from guard import REPORTS

AGAIN = "PYTEST_RUNS_AGAIN"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Crashes and hangs of browsers fail a run, unless it is one crash of a renderer, in
    a file that passes now, and the others have passed."""
    reports = REPORTS[:]
    REPORTS.clear()  # several conftest.py may have this hook
    if not reports:
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    ((test, reason), *more) = reports
    file = test.partition("::")[0] + "::"
    names = [each.nodeid for each in session.items if each.nodeid.startswith(file)]
    stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    others = more or [each for each in failed if not each.nodeid.startswith(file)]
    if (
        reason.startswith("renderer crashed")
        and names
        and not others
        and AGAIN not in os.environ
    ):
        print(f"\n1 {reason}. {file[:-2]} is run again:", flush=True)
        again = subprocess.run(
            [sys.executable, "-m", "pytest", *names],
            cwd=session.config.rootpath,
            env=os.environ | {AGAIN: "1"},
            check=False,
        )
        session.exitstatus = again.returncode
