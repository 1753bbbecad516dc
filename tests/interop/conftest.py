"""Every framework through the same fixtures, and the table of what was seen."""

import gc
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "native"))  # forge.py
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"  # without it, JAX narrows 64-bit numbers

import frameworks
from results import Results

import dlpack_web as dlw

RESULTS = pytest.StashKey[Results]()


def pytest_addoption(parser):
    parser.addoption("--results", type=Path, help="file for the table, if all passes")
    parser.addoption("--notes", type=Path, help="file for another run's --with-notes")
    parser.addoption("--with-notes", type=Path, action="append", default=[])


def pytest_configure(config):
    config.stash[RESULTS] = Results(frameworks.ALL)


def pytest_sessionfinish(session, exitstatus):
    if exitstatus != pytest.ExitCode.OK:
        return
    option, results = session.config.getoption, session.config.stash[RESULTS]
    if option("notes") is not None:
        results.save(option("notes"))
    if option("results") is not None:
        for path in reversed(option("with_notes")):
            results.add(path)
        option("results").write_text(results.markdown(), "utf-8")


@pytest.fixture(scope="session")
def loaded():
    """The instances of this session by their class."""
    return {}


@pytest.fixture(params=frameworks.ALL, ids=frameworks.TITLE)
def framework(request, loaded, tmp_path_factory):
    """Each framework in turn, as frameworks.Framework describes it."""
    kind = request.param
    if kind not in loaded:
        loaded[kind] = kind.load(tmp_path_factory.mktemp("framework"))
    return loaded[kind]


@pytest.fixture
def note(request):
    """note(framework, table, row, text): what was just seen."""
    return request.config.stash[RESULTS].note


@pytest.fixture(autouse=True)
def _nothing_leaks():
    """Every test leaves as many live tensors as it found."""
    before = dlw.live_tensors()
    yield
    if dlw.live_tensors() != before:  # a collection is slow with so many modules
        gc.collect()
    assert dlw.live_tensors() == before, "a managed tensor leaked"
