"""The model of packages/tinygrad/tests/cases/tinygrad_llm.py, on tinygrad's CPU device."""

import os

import pytest
from tinygrad_llm import TOKENS, generated, installed, pytestmark  # noqa: F401

from dlpack_web_tinygrad._device import has_compiler


@pytest.mark.skipif(
    "WHOLE" not in os.environ, reason="WHOLE=1: the tokens change with tinygrad alone"
)
def test_the_cpu_device_generates_the_same_tokens():
    if not has_compiler():
        pytest.skip("tinygrad's CPU device needs clang; interpreted it takes minutes")
    assert generated("CPU") == TOKENS
