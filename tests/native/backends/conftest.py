"""The cases of tests/browser/cases/py over a driver in memory (memory_driver.py), which need
neither a GPU nor a page: what model/ does by itself."""

import asyncio
import importlib
import inspect
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = HERE.parents[1] / "browser" / "cases" / "py"
if sys.platform == "emscripten":  # its wheel lacks the model
    collect_ignore_glob = ["*"]
else:
    # Its gpu_world and gpu_fixtures stand in the place of the page's.
    sys.path[:0] = [str(HERE), str(CASES)]
    pytest.register_assert_rewrite(*(path.stem for path in CASES.glob("*.py")))

    from gpu_fixtures import device, gpu_features, nothing_leaks
    from gpu_world import compiled
    from memory_driver import Memory

    from dlpack_web import _backends

    __all__ = ["device", "gpu_features", "nothing_leaks"]
    MEMORY = Memory(compiled)

    @pytest.fixture(autouse=True)
    def _memory(monkeypatch):
        """The default backend."""
        monkeypatch.setattr(_backends, "_default", MEMORY)


class Cases(pytest.Module):
    """A module of cases, under the name of the file that lists it."""

    def _getobj(self):
        return importlib.import_module(self.name)


class ListOfCases(pytest.Module):
    def collect(self):
        for name in self.obj.CASES:
            nodeid = f"{self.nodeid}::{name}"
            yield Cases.from_parent(self, path=self.path, name=name, nodeid=nodeid)


def pytest_pycollect_makemodule(module_path, parent):
    if module_path.name == "test_memory_cases.py":
        return ListOfCases.from_parent(parent, path=module_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
