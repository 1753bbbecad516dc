"""NaN: on the CPU operators return it. On WebGPU some return a number, as the how-to's table says."""

import numpy as np
import pytest
from js import navigator
from onnx_models import graph, message, node, number, one_node, text

import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

CPU = ["CPUExecutionProvider"]
GPU = ["WebGPUExecutionProvider"]
# WGSL leaves it to the compiler; the table is of this one.
IS_IN_TABLE = "Chrome" in navigator.userAgent
X = np.array([[np.nan, 1, -2, 3], [-1, 0.5, 2, 4]], np.float32)
SQUARE = (1, 1, "M", "N")


def initializer(name, value):
    return number(2, 1) + text(8, name) + message(9, np.float32(value).tobytes())


def clip():
    low, high = initializer("low", -1), initializer("high", 1)
    x, y = (("x", "float32", ("M", "N")), ("y", "float32", ("M", "N")))
    return graph([node("Clip", ("x", "low", "high"), ("y",))], [x], [y], low, high)


def max_pool():
    pair = text(1, "kernel_shape") + number(8, 1) + number(8, 2) + number(20, 7)
    x, y = (("x", "float32", SQUARE), ("y", "float32", (1, 1, "M", "K")))
    return graph([node("MaxPool", ("x",), ("y",), pair)], [x], [y])


def of_rows(op, inputs=("x",)):
    return one_node(op, shape=("M", "N"), inputs=inputs)


# Models, and what a NaN becomes.
LOST = {
    "Relu": (of_rows("Relu"), 0),
    "Clip": (clip(), -1),
    "Softmax": (of_rows("Softmax"), 0),
    "Sigmoid": (of_rows("Sigmoid"), 0),
    "HardSigmoid": (of_rows("HardSigmoid"), 1),
    "Exp": (of_rows("Exp"), np.inf),
    "Elu": (of_rows("Elu"), np.inf),
    "MaxPool": (max_pool(), 1),
}
KEPT = ["Abs", "LeakyRelu", "LogSoftmax", "Neg", "Sqrt", "Tanh"]
PAIRS = ["Add", "Max", "Min", "Mul"]


def both(model, x=X):
    """The rows of the result on the CPU and on WebGPU; the second ones have no NaN, and are equal."""
    results = []
    for providers in (CPU, GPU):
        session = ort.InferenceSession(model, providers=providers)
        results.append(session.run(None, {"x": x})[0].reshape(2, -1))
    on_cpu, on_gpu = results
    np.testing.assert_allclose(on_gpu[1], on_cpu[1], 1e-5)
    return on_cpu[0], on_gpu[0]


@pytest.mark.parametrize("op", LOST)
def test_operators_that_return_a_number_for_nan(op):
    model, becomes = LOST[op]
    x = X.reshape(1, 1, 2, 4) if op == "MaxPool" else X
    on_cpu, on_gpu = both(model, x)
    assert np.isnan(on_cpu[0])
    if IS_IN_TABLE:
        assert on_gpu[0] == becomes


@pytest.mark.parametrize("op", [*KEPT, *PAIRS])
def test_operators_that_return_nan_for_nan(op):
    on_cpu, on_gpu = both(of_rows(op, ("x", "x") if op in PAIRS else ("x",)))
    assert np.isnan(on_cpu[0])
    if IS_IN_TABLE:
        np.testing.assert_array_equal(np.isnan(on_gpu), np.isnan(on_cpu))
