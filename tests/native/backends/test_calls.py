"""Calls of kernels, over the driver in memory, which has no cache."""

import sys

import pytest

if sys.platform == "emscripten":
    pytest.skip("the GPU of the page is at hand here", allow_module_level=True)

import dlpack_web as dlw
from dlpack_web import _core
from dlpack_web_memory import Kernel

WGSL = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = 1; }
"""


def test_a_call_is_cached_by_the_key_that_finds_it(device, monkeypatch):
    """With all tensors that it binds: those of others may be released."""
    asked, ran = [], []
    monkeypatch.setattr(_core, "_again", lambda *key: asked.append(key))
    monkeypatch.setattr(Kernel, "core_number", 7)
    monkeypatch.setattr(Kernel, "run", lambda _, *call: ran.append(call))
    kernel = dlw.webgpu.Kernel(WGSL)
    plus = dlw.webgpu.ElementwiseKernel("f32 x, f32 k", "f32 y", "y = x + k")
    total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
    x, y, s = (dlw.empty(n, device=device) for n in (4, 4, ()))
    for call, is_cached in (
        (lambda: kernel(x, workgroups=(1, 2)), True),
        (lambda: plus(x, 2, y), True),
        (lambda: total(x, s, axis=0), True),
        (lambda: total(x, s, axis=(0,), keepdims=False), True),
        (lambda: plus(x, 2).release(), False),
        (lambda: total(x).release(), False),
    ):
        call()
        call()
        _, bound, key = ran[-1]
        if not is_cached:
            assert key == ()
            continue
        number, found = asked[-1]
        assert number == 7
        assert key[1:] == found[1:]
        assert list(map(id, key[0])) == list(map(id, found[0]))
        given = set(map(id, key[0]))
        assert all(id(one) in given for one in bound if isinstance(one, dlw.Tensor))
    for tensor in x, y, s:
        tensor.release()


def test_an_error_of_foreign_code_stays_itself(device):
    """Whatever it says of arguments."""

    class Failing:
        @property
        def __dlpack__(self):
            raise ValueError("no argument 5")

        def __len__(self):
            return 1

    plus = dlw.webgpu.ElementwiseKernel("f32 x, f32 k", "f32 y", "y = x + k")
    with (
        dlw.empty(4, device=device) as x,
        pytest.raises(ValueError, match="argument 5"),
    ):
        plus(x, Failing())
