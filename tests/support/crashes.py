"""For a conftest.py: after a crash of a renderer, runs the failed tests of its file again, once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from guard import REPORTS

AGAIN = "PYTEST_RUNS_AGAIN"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Crashes and hangs of browsers fail a run, unless only one renderer crashed, the failed
    tests of its file pass now, and all other tests have passed."""
    reports = REPORTS[:]
    REPORTS.clear()  # several conftest.py may have this hook
    if not reports:
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    ((test, reason), *more) = reports
    file = test.partition("::")[0] + "::"
    stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
    reported = [*stats.get("failed", []), *stats.get("error", [])]
    crashed = test.rpartition(" ")[0]  # which may have passed
    failed = list(dict.fromkeys([crashed, *(each.nodeid for each in reported)]))
    others = more or [name for name in failed if not name.startswith(file)]
    if reason.startswith("renderer crashed") and not others and AGAIN not in os.environ:
        print(f"\n1 {reason}. The failed tests of {file[:-2]} run again:", flush=True)
        again = subprocess.run(
            [sys.executable, "-m", "pytest", *failed],
            cwd=session.config.rootpath,
            env=os.environ | {AGAIN: "1"},
            check=False,
        )
        session.exitstatus = again.returncode
