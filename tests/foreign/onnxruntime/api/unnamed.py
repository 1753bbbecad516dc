"""Runs a model whose inputs have extents without names, as skl2onnx writes them by default."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("unnamed.onnx", providers=sys.argv[1:])
for each in session.get_inputs() + session.get_outputs():
    print(each.name, each.type, each.shape)
for shape in [(2, 2, 3), (1, 7, 3), (0, 4, 3)]:
    y, found = session.run(None, {"x": np.ones(shape, np.float32)})
    print(y.shape, found.tolist(), y.sum())
for shape in [(2, 2, 4), (2, 3)]:
    try:
        session.run(None, {"x": np.ones(shape, np.float32)})
    except Exception as error:  # noqa: BLE001 - which one is printed
        print(type(error).__name__, error)
np.savez("outputs.npz", shape=found)
