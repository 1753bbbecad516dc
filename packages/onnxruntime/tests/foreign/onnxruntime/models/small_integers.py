"""Quantised models: what goes in as floats or bytes, and comes out within a step."""

import sys

import numpy as np
import onnxruntime as ort
from checks import check

session = ort.InferenceSession("integers_q.onnx", providers=sys.argv[1:])
random = np.random.default_rng(5)
check("types", [(o.name, o.type, o.shape) for o in session.get_outputs()])
for shape in [(1, 3, 8, 8), (2, 3, 5, 7), (1, 3, 1, 1), (4, 3, 16, 4)]:
    image = random.random(shape, dtype=np.float32)
    check(f"{shape}: bytes", lambda: session.run(["y"], {"image": image})[0])
    check(
        f"{shape}: floats",
        lambda: session.run(["features"], {"image": image})[0],
        close=0.051,
    )
check(
    "saturated",
    lambda: session.run(["y"], {"image": np.full((1, 3, 4, 4), 1e6, np.float32)})[0],
)
check(
    "negative",
    lambda: session.run(["y"], {"image": np.full((1, 3, 4, 4), -5, np.float32)})[0],
)
check(
    "zeros",
    lambda: session.run(["y"], {"image": np.zeros((1, 3, 4, 4), np.float32)})[0],
)
check("uint8", lambda: session.run(["y"], {"image": np.zeros((1, 3, 4, 4), np.uint8)}))
check(
    "dtype",
    lambda: str(
        session.run(["y"], {"image": np.zeros((1, 3, 4, 4), np.float32)})[0].dtype
    ),
)
quantised = ort.InferenceSession("quantised.onnx", providers=sys.argv[1:])
pixels = np.load("digits.npz")["pixels"]
check(
    "digits",
    lambda: quantised.run(["logits"], {"pixels": pixels})[0].argmax(axis=1).tolist(),
)
check(
    "one digit",
    lambda: (
        quantised.run(["logits"], {"pixels": pixels[:1]})[0].argmax(axis=1).tolist()
    ),
)
half = ort.InferenceSession("float16.onnx", providers=["CPUExecutionProvider"])
check("halves: types", [half.get_inputs()[0].type, half.get_outputs()[0].type])
check(
    "halves: digits",
    lambda: (
        half.run(None, {"pixels": pixels.astype(np.float16)})[0].argmax(axis=1).tolist()
    ),
)
check(
    "halves: dtype",
    lambda: str(half.run(None, {"pixels": pixels.astype(np.float16)})[0].dtype),
)
check("halves: float32", lambda: half.run(None, {"pixels": pixels}))
check(
    "halves: a list",
    lambda: half.run(None, {"pixels": pixels.tolist()})[0].argmax(axis=1).tolist(),
)
