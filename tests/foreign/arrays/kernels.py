"""Kernels in float32, as programs call them: on a GPU where there is one, else by NumPy.

An ndarray gives an ndarray, which is the program as it was; a Tensor gives a Tensor, of the GPU
where DEVICE is one. They round nothing where the elements have few digits, so both say the same.
"""

from functools import cache
from typing import Any

import numpy as np

import dlpack_web as dlw

#: The Device to compute on, which the tests set; None: there is none.
DEVICE: dlw.Device | None = None

_HEAD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> width: u32;
@group(0) @binding(3) var<uniform> level: f32;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i >= arrayLength(&y)) { return; }
"""
_NEIGHBOURS = """
  let n = i % width;
  let left = x[select(i - 1, i, n == 0)];
  let right = x[select(i + 1, i, n == width - 1)];
"""
_BODIES = {
    "scaled": "y[i] = x[i] * level + 0.0 * f32(width);",
    "above": "y[i] = select(0.0, 1.0, x[i] > level && width > 0);",
    "slopes": _NEIGHBOURS + "y[i] = (right - left) * level;",
    "smoothed": _NEIGHBOURS + "y[i] = (left + x[i] + x[i] + right) * level;",
}


def scaled(x: Any, factor: float) -> Any:
    """x * factor."""
    return _run("scaled", x, factor, lambda a: a * np.float32(factor))


def above(x: Any, level: float) -> Any:
    """1.0 where an element is greater than the level, else 0.0."""
    return _run("above", x, level, lambda a: (a > level).astype("float32"))


def slopes(x: Any) -> Any:
    """Half the difference of the neighbours along the last axis, whose ends are repeated."""
    return _run(
        "slopes", x, 0.5, lambda a: (_moved(a, 1) - _moved(a, -1)) * np.float32(0.5)
    )


def smoothed(x: Any) -> Any:
    """A weighted mean (1, 2, 1) along the last axis, whose ends are repeated."""
    quarter = np.float32(0.25)
    return _run(
        "smoothed", x, 0.25, lambda a: (_moved(a, -1) + a + a + _moved(a, 1)) * quarter
    )


def _moved(a: Any, step: int) -> Any:
    last = a.shape[-1] - 1
    return a[..., np.clip(np.arange(last + 1) + step, 0, last)]


def _run(name: str, x: Any, level: float, natively: Any) -> Any:
    if not isinstance(x, dlw.Tensor):
        return natively(np.asarray(x, "float32"))
    if DEVICE is None:
        return dlw.from_dlpack(natively(np.asarray(x, "float32")))
    y = dlw.empty(x.shape, "float32", device=DEVICE)
    given = x.to_device(DEVICE, dtype="float32")
    _kernel(name)(given, y, np.uint32(x.shape[-1]), np.float32(level))
    return y


@cache
def _kernel(name: str) -> dlw.webgpu.Kernel:
    return dlw.webgpu.Kernel(_HEAD + _BODIES[name] + "}", label=name)
