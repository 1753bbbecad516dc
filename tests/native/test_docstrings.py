"""Every public name has a docstring with an example, and the examples are true."""

import doctest

import docstrings
import numpy as np
import pytest

import dlpack_web as dlw

PUBLIC = dict(docstrings.public())
IN_BROWSER = [name for name, doc in PUBLIC.items() if docstrings.needs_browser(doc)]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_an_example(name):
    assert docstrings.examples(PUBLIC[name]), f"{name} has no example in its docstring"


def test_all_that_is_public_is_looked_at():
    assert {"Tensor.shape", "Tensor.to_host", "webgpu.Kernel.__call__"} <= set(PUBLIC)
    assert {"from_dlpack", "CopyError", "DType.kind", "Adapter.to_js"} <= set(PUBLIC)
    assert "Device.count" not in PUBLIC  # a tuple's
    assert "DType.upper" not in PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_example_is_true(name):
    if name in IN_BROWSER:
        pytest.skip("runs in tests/browser/docstring_cases.py: it needs a browser")
    examples = docstrings.examples(PUBLIC[name])
    globs = {"np": np, "dlw": dlw}
    told = []
    test = doctest.DocTest(examples, globs, name, None, None, PUBLIC[name])
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert not told, "".join(told)
