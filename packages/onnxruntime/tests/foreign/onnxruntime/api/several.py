"""Inputs and outputs of five dtypes, of which integers have more bits than a float64."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("several.onnx", providers=sys.argv[1:])
for each in session.get_inputs() + session.get_outputs():
    print(each.name, each.type, each.shape)

feeds = {
    "i64": np.array([[0, 1, -1], [2**40 + 1, -(2**60), 3]]),
    "i32": np.arange(6, dtype=np.int32).reshape(2, 3) - 3,
    "u8": np.array([[0, 1, 2], [3, 254, 255]], np.uint8),
    "flag": np.array([[True, False, True], [False, True, False]]),
    "x": np.linspace(-300, 300, 6, dtype=np.float32).reshape(2, 3),
}
names = [each.name for each in session.get_outputs()]
outputs = dict(zip(names, session.run(names, feeds)))
for name, array in outputs.items():
    print(name, array.dtype, array.tolist())
np.savez("outputs.npz", **outputs)
