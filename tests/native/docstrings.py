"""The public names of the package, and the examples of their docstrings.

Those that need no browser run natively (test_docstrings.py), the others in one
(tests/browser/cases/py/docstring_cases.py).
"""

import doctest
import importlib
import inspect
import re

import dlpack_web as dlw

# Protocols that are part of what a Tensor promises.
PROTOCOLS = {"__dlpack__", "__dlpack_device__", "__call__", "__dlpack_data_type__"}
NEEDS_BROWSER = re.compile(r"\bawait\b|webgpu|\bjs\b|to_js|from_js")


def _members(kind):
    """What a class has that its builtin or standard bases do not give it."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("dlpack_web")]
    given = {name for base in set(kind.__mro__) - set(ours) for name in vars(base)}
    given |= set(getattr(kind, "_fields", ()))  # the class says what they are
    given |= set(getattr(kind, "__members__", ()))
    for name in sorted({name for base in ours for name in vars(base)} - given):
        there = hasattr(kind, name)  # not only a hint in its place
        if there and (name in PROTOCOLS or not name.startswith("_")):
            yield name, inspect.getattr_static(kind, name)


def _public():
    """(name, object): all of __all__, what is in the module there, members of classes."""
    for name in dlw.__all__:
        yield name, getattr(dlw, name)
    for name in dlw.webgpu.__all__:
        yield f"webgpu.{name}", getattr(dlw.webgpu, name)


def members_of(module):
    """(name, docstring) of the public names of a module that `_public` leaves out, as it is
    not there everywhere."""
    found = importlib.import_module(module)
    return _documented((name, getattr(found, name)) for name in found.__all__)


def public():
    """(name, docstring) of every public name."""
    return _documented(_public())


def _documented(things):
    for name, thing in things:
        if isinstance(thing, str):  # __version__
            continue
        yield name, thing.__doc__
        if isinstance(thing, type):
            for member, value in _members(thing):
                yield f"{name}.{member}", value.__doc__


def examples(docstring):
    """doctest's examples of a docstring."""
    return doctest.DocTestParser().get_examples(inspect.cleandoc(docstring or ""))


def needs_browser(docstring):
    return any(NEEDS_BROWSER.search(each.source) for each in examples(docstring))
