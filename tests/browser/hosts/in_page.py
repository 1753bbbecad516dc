"""Runs pytest inside Pyodide and hands the outcomes to the page as JSON.

Test functions may be `async`: WebGPU's readback is. They are run with run_sync, so a
browser with JSPI is needed for those.
"""

import inspect
import json
import os

import gpu_fixtures
import pytest
from pyodide.ffi import run_sync

# The desktop runs these, and pages do with WHOLE=1.
LONG = "large_uploads or largest_tensors or thousand or ten_million or of_workgroups"


class Collector:
    """One report for each test: id, outcome, detail (traceback or reason of a skip)."""

    def __init__(self):
        self.reports = []

    def add(self, node_id, outcome, detail):
        self.reports.append({"id": node_id, "outcome": outcome, "detail": detail})

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        run_sync(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.add(report.nodeid, "skipped", reason(report))
        elif report.failed:
            self.add(report.nodeid, "failed", report.longreprtext)
        elif report.when == "call":
            self.add(report.nodeid, "passed", "")

    def pytest_collectreport(self, report):
        if report.failed:
            self.add(report.nodeid, "failed", report.longreprtext)
        elif report.skipped:
            self.add(report.nodeid, "skipped", reason(report))


def reason(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    return getattr(report, "wasxfail", "") or str(report.longrepr)


def run_pytest(root, files, whole):
    """`files` are relative to `root`, the copy of the repository in Pyodide; `whole` is WHOLE's value."""
    os.chdir(root)
    os.environ["WHOLE"] = whole
    collector = Collector()
    # No faulthandler and no capture by file descriptors: Pyodide has neither.
    options = ["-p", "no:faulthandler", "-p", "no:cacheprovider", "--capture=sys", "-q"]
    if not whole:
        options += ["-k", f"not ({LONG})"]
    status = pytest.main([*options, *files], plugins=[collector, gpu_fixtures])
    told = {report["outcome"] for report in collector.reports}
    # A file that skips as a whole has no tests: pytest calls that status 5.
    if status not in (0, 1) and not ("failed" in told or told == {"skipped"}):
        collector.add("pytest", "failed", f"pytest ended with status {status!r}")
    return json.dumps(collector.reports)
