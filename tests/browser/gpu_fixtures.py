"""Fixtures for the cases that run inside the page (in_page.py hands them to pytest)."""

import gc

import pytest
from js import harness
from pyodide.ffi import run_sync

import dlpack_web as dlw


@pytest.fixture(scope="session")
def device():
    return run_sync(dlw.webgpu.request_device())


def live():
    """Tensors alive, as C and as JavaScript count them."""
    return dlw.live_tensors(), harness.context.library.liveTensors()


@pytest.fixture
def nothing_leaks():
    before = live()
    yield
    gc.collect()  # exceptions keep the frames, and so the tensors, of their traceback
    assert live() == before
