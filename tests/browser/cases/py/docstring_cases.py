"""The examples of docstrings that need WebGPU, run as they stand there: with `await`. On the
desktop, too, where what is a page's own is skipped."""

import ast
import contextlib
import doctest
import inspect
import io
import re
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from gpu_world import lacks, library_of

import dlpack_web as dlw

sys.path.append(str(Path(__file__).parents[3] / "native"))
import docstrings

pytestmark = pytest.mark.usefixtures("nothing_leaks")

NEEDING = {
    name: doc for name, doc in docstrings.public() if docstrings.needs_browser(doc)
}


def show(value):
    """As the prompt does, but nothing is kept in `_`."""
    if value is not None:
        print(repr(value))


async def said(source, names):
    """What a line says at the prompt: its output, or the end of its traceback."""
    code = compile(source, "<docstring>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        sys.displayhook, before = show, sys.displayhook
        try:
            result = eval(code, names)
            if inspect.iscoroutine(result):
                await result
        except Exception as error:  # noqa: BLE001 - any, as the prompt tells it
            return None, "".join(traceback.format_exception_only(error))
        finally:
            sys.displayhook = before
    return output.getvalue(), None


def is_as_said(example, output, error):
    if error is None:
        options = sum(flag for flag, on in example.options.items() if on)
        checker = doctest.OutputChecker()
        return not example.exc_msg and checker.check_output(
            example.want, output, options
        )
    if example.exc_msg is None:
        return False
    if example.options.get(doctest.IGNORE_EXCEPTION_DETAIL):
        return error.split(":")[0] == example.exc_msg.split(":")[0]
    return error == example.exc_msg


@pytest.mark.parametrize("name", NEEDING)
async def test_example_is_true(name):
    if missing := lacks(NEEDING[name]):
        pytest.skip(missing)
    names = {"np": np, "dlw": dlw}
    if re.search(r"\bort\b", NEEDING[name]):
        names["ort"] = await library_of(name)
    await check(docstrings.examples(NEEDING[name]), names)


async def check(examples, names):
    for example in examples:
        if example.options.get(doctest.SKIP):
            continue
        output, error = await said(example.source, names)
        assert is_as_said(example, output, error), (
            f"{example.source}gave\n{error or output}instead of\n{example.want}"
        )


def test_there_are_examples():
    assert len(NEEDING) > 20
