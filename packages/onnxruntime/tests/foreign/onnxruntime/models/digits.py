"""A network that reads handwritten digits, eight at a time."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("digits.onnx", providers=sys.argv[1:])
for each in session.get_inputs() + session.get_outputs():
    print(each.name, each.type, each.shape)

pixels = np.load("digits.npz")["pixels"]
(logits,) = session.run(None, {"pixels": pixels})
print(logits.argmax(axis=1).tolist())
np.savez("outputs.npz", logits=logits)
