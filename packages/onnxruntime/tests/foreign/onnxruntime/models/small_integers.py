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


def of_pixels(value, dtype=np.float32):
    return session.run(["y"], {"image": np.full((1, 3, 4, 4), value, dtype)})


for name, value in {"saturated": 1e6, "negative": -5, "zeros": 0}.items():
    check(name, lambda: of_pixels(value)[0])
check("uint8", lambda: of_pixels(0, np.uint8))
check("dtype", lambda: str(of_pixels(0)[0].dtype))
quantised = ort.InferenceSession("quantised.onnx", providers=sys.argv[1:])
pixels = np.load("digits.npz")["pixels"]


def digits(session, pixels, outputs=None):
    return session.run(outputs, {"pixels": pixels})[0].argmax(axis=1).tolist()


check("digits", lambda: digits(quantised, pixels, ["logits"]))
check("one digit", lambda: digits(quantised, pixels[:1], ["logits"]))
half = ort.InferenceSession("float16.onnx", providers=["CPUExecutionProvider"])
check("halves: types", [half.get_inputs()[0].type, half.get_outputs()[0].type])
halves = pixels.astype(np.float16)
check("halves: digits", lambda: digits(half, halves))
check("halves: dtype", lambda: str(half.run(None, {"pixels": halves})[0].dtype))
check("halves: float32", lambda: half.run(None, {"pixels": pixels}))
check("halves: a list", lambda: digits(half, pixels.tolist()))
