"""tests/native/attributes.py has what the array API has of exchange and devices."""

import inspect

import attributes
import numpy as np
import pytest

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


def test_ndarray_has_every_attribute():
    names = {name for name in dir(xp.ones(1)) if name[0] != "_" or name[:2] == "__"}
    pythons = {
        "__annotations__",
        "__firstlineno__",
        "__slots__",
        "__static_attributes__",
    }
    assert (
        names - {*dir(np.ndarray), *dir(object), "__module__", "__weakref__"} <= pythons
    )


def test_functions_that_take_a_device_or_copy():
    found = {
        name: ", ".join(inspect.signature(call).parameters)
        for name in xp.__all__
        if inspect.isfunction(call := getattr(xp, name))
    }
    mentioned = {
        name: given
        for name, given in found.items()
        if {"device", "copy"} & {*given.split(", ")} or name.startswith("__")
    }
    assert mentioned == attributes.FUNCTIONS
    assert xp.__array_api_version__ == attributes.ARRAY_API
