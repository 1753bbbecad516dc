"""Cases of tinygrad where there is no browser."""

from __future__ import annotations

import pytest
from runtime import Runtime
from tinygrad_page import LOAD


@pytest.mark.parametrize("file", ["cases", "llm", "programs", "tensors"])
def test_cases_of_tinygrad(file: str, runtime: Runtime) -> None:
    runtime.python(LOAD)
    runtime.pytest([f"packages/tinygrad/tests/cases/tinygrad_{file}.py"]).must_pass()
    assert runtime.call("complaints") == []
