"""Collects the shared cases for hosts other than a page: a module with a list CASES has those of
the modules that it lists. For conftest.py of such a host."""

import asyncio
import importlib
import inspect

import pytest


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
    if module_path.name.endswith("_cases.py"):
        return ListOfCases.from_parent(parent, path=module_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
