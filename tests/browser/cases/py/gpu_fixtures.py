"""Fixtures for the cases that run inside the page (in_page.py hands them to pytest)."""

import gc
import sys

import pytest
from gpu_world import has_canvases, live, run

import dlpack_web as dlw

__all__ = ["device", "gpu_features", "live", "nothing_leaks", "nothing_lives_on"]


needs_canvas = pytest.mark.skipif(not has_canvases(), reason="only pages have canvases")


@pytest.fixture
def device():
    """The default device: another one where a test before lost it."""
    return run(dlw.webgpu.request_device())


@pytest.fixture
def gpu_features(device):
    with dlw.empty(1, device=device) as tensor:
        return set(tensor.js.device.gpu.features)


@pytest.fixture
def nothing_leaks():
    before = live()
    yield
    # Pyodide keeps the last error that came through JavaScript where the REPL does.
    for name in ("last_exc", "last_value", "last_traceback"):
        vars(sys).pop(name, None)
    gc.collect()  # exceptions keep the frames, and so the tensors, of their traceback
    after = live()
    assert after == before, f"tensors alive: {after}, before the test: {before}"


@pytest.fixture
def nothing_lives_on():
    """As `nothing_leaks`, but a collection is slow with many modules: only where it is needed."""
    before = live()
    yield
    if live() != before:
        gc.collect()
    assert live() == before, "a managed tensor leaked"
