"""Every public name has a docstring with an example, and the examples are true."""

import ast
import doctest
import inspect
import operator
from pathlib import Path

import docstrings
import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web import _core, internal

PUBLIC = dict(docstrings.public())
IN_BROWSER = [name for name, doc in PUBLIC.items() if docstrings.needs_browser(doc)]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_an_example(name):
    assert docstrings.examples(PUBLIC[name]), f"{name} has no example in its docstring"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_begins_with_a_sentence(name):
    first = inspect.cleandoc(PUBLIC[name]).partition("\n\n")[0]
    assert first, f"{name} says nothing"
    assert not first.startswith(">>>"), f"{name} says nothing before its examples"


def test_all_that_is_public_is_looked_at():
    assert {"Tensor.shape", "Tensor.to_host", "webgpu.Kernel.__call__"} <= set(PUBLIC)
    assert {"from_dlpack", "CopyError", "DType.kind", "Device.gpu"} <= set(PUBLIC)
    assert "Device.count" not in PUBLIC  # a tuple's
    assert "DType.upper" not in PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_example_is_true(name):
    if name in IN_BROWSER:
        pytest.skip(
            "runs in tests/browser/cases/py/docstring_cases.py: it needs a browser"
        )
    examples = docstrings.examples(PUBLIC[name])
    globs = {"np": np, "dlw": dlw}
    told = []
    test = doctest.DocTest(examples, globs, name, None, None, PUBLIC[name])
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert not told, "".join(told)


def test_examples_of_the_seam_are_true():
    failed, tried = doctest.testmod(
        internal, extraglobs={"dlw": dlw, "internal": internal}
    )
    assert (failed, tried > 3) == (0, True)


# Files whose public functions list their parameters; of onnxruntime's names only some do.
LISTED = (
    "_adapters",
    "_arrow",
    "webgpu",
    "_files/open",
    "_files/save",
    "_tensor/making",
    "_tensor/tensor",
    "internal",
    *(
        "_kernels/batch",
        "_formulas/elementwise",
        "_kernels/kernel",
        "_formulas/reduction",
    ),
)


@pytest.mark.parametrize("file", LISTED)
def test_public_functions_list_their_parameters(file):
    """ruff's D417 then asks for all of them."""
    text = (Path(dlw.__file__).parent / f"{file}.py").read_text("utf-8")
    for thing in ast.walk(ast.parse(text)):
        if isinstance(thing, ast.FunctionDef | ast.AsyncFunctionDef):
            given, doc = thing.args, ast.get_docstring(thing)
            names = given.posonlyargs + given.args + given.kwonlyargs
            public = doc and not thing.name.startswith("_")
            public = public and thing.name not in ("again", "share")  # internal
            if public and [each for each in names if each.arg not in ("self", "cls")]:
                assert "\nParameters\n---" in doc, thing.name


SIGNATURES = {
    "Tensor.release": "(self, /)",
    "Tensor.__dlpack_device__": "(self, /)",
    "Tensor.__dlpack__": "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None, dtype=None)",
    "from_buffer": "(obj, /)",
    "live_tensors": "()",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_functions_of_c_have_signatures(name):
    """For help() and for editors, which see nothing of the C behind them."""
    function = operator.attrgetter(name)(_core)
    assert str(inspect.signature(function)) == SIGNATURES[name]
    assert not function.__doc__.startswith(name.rpartition(".")[2] + "(")
