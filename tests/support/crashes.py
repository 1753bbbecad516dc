"""For a conftest.py: runs again, once, what failed in a file in which a renderer crashed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from guard import REPORTS

AGAIN = "PYTEST_RUNS_AGAIN"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Crashes and hangs of browsers fail a run, unless it is one crash of a renderer, what
    failed in its file passes now, and all others have passed."""
    reports = REPORTS[:]
    REPORTS.clear()  # several conftest.py may have this hook
    if not reports:
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    ((test, reason), *more) = reports
    file = test.partition("::")[0] + "::"
    stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
    reported = [*stats.get("failed", []), *stats.get("error", [])]
    crashed = test.rpartition(" ")[0]  # it may have passed
    failed = list(dict.fromkeys([crashed, *(each.nodeid for each in reported)]))
    others = more or [name for name in failed if not name.startswith(file)]
    if reason.startswith("renderer crashed") and not others and AGAIN not in os.environ:
        print(f"\n1 {reason}. What failed in {file[:-2]} is run again:", flush=True)
        again = subprocess.run(
            [sys.executable, "-m", "pytest", *failed],
            cwd=session.config.rootpath,
            env=os.environ | {AGAIN: "1"},
            check=False,
        )
        session.exitstatus = again.returncode
