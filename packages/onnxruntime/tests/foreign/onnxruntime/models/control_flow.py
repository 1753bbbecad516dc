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
for name, flag in {
    "then": np.array(True),
    "else": np.array(False),
    "of a comparison": np.array(1 > 2),
    "a bool of Python": True,
    "an int": np.array(1),
}.items():
    check(f"branch: {name}", lambda: branches.run(None, {"flag": flag, "x": x}))

loop = session("loop")
for count in (0, 1, 3, 10):
    times = np.array(count)
    check(f"loop: {count} times", lambda: loop.run(None, {"times": times, "x": x}))
for name, times in {
    "int64": np.array(2, np.int64),
    "one element": np.array([2], np.int64),
}.items():
    check(f"loop: {name}", lambda: loop.run(["last"], {"times": times, "x": x}))

scalar = session("scalar")
check("scalar: shapes", [i.shape for i in scalar.get_inputs() + scalar.get_outputs()])
for name, value in {
    "np.array": np.array(1.5, np.float32),
    "a float": 1.5,
    "a list": [1.5],
    "one element": np.array([1.5], np.float32),
    "doubles": np.array(1.5),
}.items():
    check(f"scalar: {name}", lambda: scalar.run(None, {"x": value}))
two = np.array([1.5, 2], np.float32)
check("scalar: two elements", lambda: scalar.run(["y"], {"x": two}))
result = scalar.run(None, {"x": np.array(1.5, np.float32)})[0]
check("scalar: the result's shape", result.shape)
check("scalar: the result's type", type(result).__name__)

defaults = session("optional")
check("defaults: inputs", [i.name for i in defaults.get_inputs()])
check(
    "defaults: initializers",
    [(i.name, i.type, i.shape) for i in defaults.get_overridable_initializers()],
)
warm = np.array(2, np.float32)
for name, given in {
    "none": {"x": x},
    "temperature": {"x": x, "temperature": warm},
    "bool": {"x": x, "negate": np.array(True)},
    "both": {"x": x, "negate": np.array(True), "temperature": np.array(3, np.float32)},
    "none again": {"x": x},
    "wrong dtype": {"x": x, "temperature": np.array(2.0)},
    "a constant": {"x": x, "minus": warm},
    "without x": {"temperature": warm},
}.items():
    check(f"defaults: {name}", lambda: defaults.run(None, given))
