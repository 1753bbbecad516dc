"""The fixtures of tests/browser/cases/py/gpu_fixtures.py, over wgpu-py."""

import gc

import pytest
from gpu_world import live, run

import dlpack_web as dlw

needs_canvas = pytest.mark.skipif(False, reason="there are arrays")

__all__ = ["device", "gpu_features", "live", "nothing_leaks"]


@pytest.fixture
def device():
    """The default device: another one where a test before lost it."""
    return run(dlw.webgpu.request_device())


@pytest.fixture
def gpu_features(device):
    return set(device.gpu.features)


@pytest.fixture
def nothing_leaks():
    gc.collect()
    gc.freeze()  # what is there by now stays: the next collection need not look at it
    before = live()
    yield
    gc.collect()  # exceptions keep the frames, and so the tensors, of their traceback
    after = live()
    assert after == before, f"tensors alive: {after}, before the test: {before}"
