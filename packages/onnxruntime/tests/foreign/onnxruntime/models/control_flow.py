"""Models that branch and loop, scalars, and inputs that have defaults."""

import sys

import numpy as np
import onnxruntime as ort
from checks import check


def session(name):
    return ort.InferenceSession(f"{name}.onnx", providers=sys.argv[1:])


x = np.array([1, 2], np.float32)
branches = session("branches")
check("branch: inputs", [(i.name, i.type, i.shape) for i in branches.get_inputs()])
check("branch: then", lambda: branches.run(None, {"flag": np.array(True), "x": x}))
check("branch: else", lambda: branches.run(None, {"flag": np.array(False), "x": x}))
check(
    "branch: of a comparison",
    lambda: branches.run(None, {"flag": np.array(1 > 2), "x": x}),
)
check("branch: a bool of Python", lambda: branches.run(None, {"flag": True, "x": x}))
check("branch: an int", lambda: branches.run(None, {"flag": np.array(1), "x": x}))

loop = session("loop")
for times in (0, 1, 3, 10):
    check(
        f"loop: {times} times",
        lambda: loop.run(None, {"times": np.array(times), "x": x}),
    )
check(
    "loop: int64", lambda: loop.run(["last"], {"times": np.array(2, np.int64), "x": x})
)
check(
    "loop: one element",
    lambda: loop.run(["last"], {"times": np.array([2], np.int64), "x": x}),
)

scalar = session("scalar")
check("scalar: shapes", [i.shape for i in scalar.get_inputs() + scalar.get_outputs()])
check("scalar: np.array", lambda: scalar.run(None, {"x": np.array(1.5, np.float32)}))
check(
    "scalar: the result's shape",
    lambda: scalar.run(None, {"x": np.array(1.5, np.float32)})[0].shape,
)
check(
    "scalar: the result's type",
    lambda: type(scalar.run(None, {"x": np.array(1.5, np.float32)})[0]).__name__,
)
check("scalar: a float", lambda: scalar.run(None, {"x": 1.5}))
check("scalar: a list", lambda: scalar.run(None, {"x": [1.5]}))
check(
    "scalar: one element", lambda: scalar.run(None, {"x": np.array([1.5], np.float32)})
)
check(
    "scalar: two elements",
    lambda: scalar.run(["y"], {"x": np.array([1.5, 2], np.float32)}),
)
check("scalar: doubles", lambda: scalar.run(None, {"x": np.array(1.5)}))

defaults = session("optional")
check("defaults: inputs", [i.name for i in defaults.get_inputs()])
check(
    "defaults: initializers",
    [(i.name, i.type, i.shape) for i in defaults.get_overridable_initializers()],
)
check("defaults: none", lambda: defaults.run(None, {"x": x}))
check(
    "defaults: temperature",
    lambda: defaults.run(None, {"x": x, "temperature": np.array(2, np.float32)}),
)
check("defaults: bool", lambda: defaults.run(None, {"x": x, "negate": np.array(True)}))
check(
    "defaults: both",
    lambda: defaults.run(
        None, {"x": x, "negate": np.array(True), "temperature": np.array(3, np.float32)}
    ),
)
check("defaults: none again", lambda: defaults.run(None, {"x": x}))
check(
    "defaults: wrong dtype",
    lambda: defaults.run(None, {"x": x, "temperature": np.array(2.0)}),
)
check(
    "defaults: a constant",
    lambda: defaults.run(None, {"x": x, "minus": np.array(2, np.float32)}),
)
check(
    "defaults: without x",
    lambda: defaults.run(None, {"temperature": np.array(2, np.float32)}),
)
