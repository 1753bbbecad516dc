"""tinygrad's own test_tiny.py, of its source distribution, on dlpack_web's device.

The host puts the folder of test_tiny.py on Python's path.
"""

import unittest

import pytest
from tinygrad_world import Tensor, held, installed  # noqa: F401

pytestmark = pytest.mark.usefixtures("installed")

import test_tiny

#: What tinygrad skips here, with the reason that it gives.
LEFT_OUT = {
    "test_image": "image only supported on CL",
    "test_beam_image": "image only supported on CL",
}


NAMES = unittest.TestLoader().getTestCaseNames(test_tiny.TestTiny)


def test_every_test_is_known():
    assert len(NAMES) == 21
    assert set(LEFT_OUT) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_of_tinygrad(name):
    Tensor.rand(1).realize()  # the seed stays on the device
    before = held()
    result = unittest.TestResult()
    test_tiny.TestTiny(name).run(result)
    for _, traceback in result.errors + result.failures:
        raise AssertionError(traceback)
    assert result.testsRun == 1
    assert held() == before
    reasons = [reason for _, reason in result.skipped]
    assert reasons == ([LEFT_OUT[name]] if name in LEFT_OUT else [])
    if reasons:
        pytest.skip(f"tinygrad: {reasons[0]}")
