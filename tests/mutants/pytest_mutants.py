"""A plugin of pytest, for one run of tests on one mutant, or for the map of what tests run.

MUTANTS_PLAN: a JSON file {test: seconds}: only these tests run, in that order, each with an
limit, which ends the process. MUTANTS_RECORD: a JSON file that gets {test: [seconds, lines]}.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

PLAN = os.environ.get("MUTANTS_PLAN")
RECORD = os.environ.get("MUTANTS_RECORD")
ROOT = os.environ.get(
    "MUTANTS_ROOT", ""
)  # of the Python files whose lines are recorded


def pytest_configure(config):
    try:
        from hypothesis import Phase, settings
    except ImportError:  # not in every environment
        pass
    else:
        # What fails is enough: to make it small would take minutes.
        settings.register_profile(
            "mutants", phases=[Phase.explicit, Phase.generate], database=None
        )
        settings.load_profile("mutants")
    if RECORD:
        config.pluginmanager.register(Recorder(), "mutants-recorder")
    if PLAN:
        config.pluginmanager.register(Planned(), "mutants-planned")


LIMITS = {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}
#: How often as long as it may use the processor a test may take, beside other programs.
WAITS = 12


class Planned:
    def __init__(self):
        self.seconds = json.loads(Path(PLAN).read_text())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        place = {name: at for at, name in enumerate(self.seconds)}
        chosen = [item for item in items if item.nodeid in place]
        items[:] = sorted(chosen, key=lambda item: place[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        # A loop in C asks for no signal of Python's: the default action ends it.
        for number in LIMITS.values():
            signal.signal(number, signal.SIG_DFL)
        factor = float(os.environ.get("MUTANTS_SLOWER", "1"))
        most = (5 + 10 * self.seconds[item.nodeid]) * factor
        # Beside other work a test may wait long, but needs no more of the processor.
        signal.setitimer(signal.ITIMER_PROF, most)
        signal.setitimer(signal.ITIMER_REAL, WAITS * most)
        try:
            return (yield)
        finally:
            for timer in LIMITS:
                signal.setitimer(timer, 0)


class Recorder:
    def __init__(self):
        self.take = take_python if ROOT else take_c()
        self.found = {}
        self.children = tempfile.TemporaryDirectory()
        if not ROOT:
            os.environ["MUTANTS_CHILDREN"] = self.children.name

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        for place in self.take():  # imports, collection, fixtures of others
            self.found.setdefault("", [0, []])[1].append(place)
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - start
            lines = {*self.take(), *self.take_from_children()}
            self.found[item.nodeid] = [round(seconds, 4), sorted(lines)]

    def take_from_children(self):
        for file in Path(self.children.name).iterdir():
            yield from json.loads(file.read_text())
            file.unlink()

    def pytest_runtest_logreport(self, report):
        if report.failed:  # nothing is learnt from a test that fails without a mutant
            self.found.setdefault("failed", [0, []])[1].append(report.nodeid)

    def pytest_sessionfinish(self):
        Path(RECORD).write_text(json.dumps(self.found))


def take_c():
    """A function that gives the addresses that ran since its last call."""
    import ctypes

    from dlpack_web import _core

    library = ctypes.CDLL(_core.__file__)
    library.mutants_take.restype = ctypes.c_size_t
    addresses = (ctypes.c_size_t * (1 << 16))()
    return lambda: addresses[: library.mutants_take(addresses)]


LINES = set()


def take_python():
    """The lines, as "file:line", that ran since the last call."""
    taken = [f"{file}:{line}" for file, line in LINES]
    LINES.clear()
    sys.monitoring.restart_events()
    return taken


def watch_python():
    """Record lines. Each one reports only its first run after sys.monitoring.restart_events()."""
    monitoring, tool = sys.monitoring, sys.monitoring.COVERAGE_ID

    package = f"{ROOT}/dlpack_web/"

    def on_line(code, line):
        if code.co_filename.startswith(package):
            LINES.add((code.co_filename.removeprefix(package), line))
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, "mutants")
    monitoring.register_callback(tool, monitoring.events.LINE, on_line)
    monitoring.set_events(tool, monitoring.events.LINE)


if RECORD and ROOT:
    watch_python()
