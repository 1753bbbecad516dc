"""The examples of this package's docstrings, run as they stand there."""

import numpy as np
import pytest
from docstring_cases import check, docstrings
from onnx_models import doubling

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("nothing_leaks")

EXAMPLES = {
    name: found
    for name, doc in docstrings.members_of("dlpack_web_onnxruntime")
    if (found := docstrings.examples(doc))
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_example_is_true(name):
    await check(EXAMPLES[name], {"np": np, "dlw": dlw, "model": doubling()})


def test_there_are_examples():
    assert len(EXAMPLES) > 8
