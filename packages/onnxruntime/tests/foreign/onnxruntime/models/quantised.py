"""The digits with 8-bit weights."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("quantised.onnx", providers=sys.argv[1:])
for each in session.get_inputs() + session.get_outputs():
    print(each.name, each.type, each.shape)

pixels = np.load("digits.npz")["pixels"]
logits, quantised = session.run(None, {"pixels": pixels})
print(quantised.dtype, logits.argmax(axis=1).tolist())
np.savez("outputs.npz", logits=logits, quantised=quantised)
