"""A block of a transformer that says, of each token, which one comes next."""

import sys

import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
session = ort.InferenceSession("transformer.onnx", options, providers=sys.argv[1:])
for each in session.get_inputs() + session.get_outputs():
    print(each.name, each.type, each.shape)

tokens = np.random.default_rng(2).integers(0, 64, (1, 12))
hidden, logits, following = session.run(
    ["hidden", "logits", "next"], {"tokens": tokens}
)
print(following.dtype, following.tolist())

# Nothing that comes later changes what was said before.
tokens[0, -1] = (tokens[0, -1] + 1) % 64
(changed,) = session.run(["hidden"], {"tokens": tokens})
print(
    np.abs(changed - hidden)[0, :-1].max() < 1e-5,
    np.abs(changed - hidden)[0, -1].max() > 0.1,
)
np.savez("outputs.npz", hidden=hidden, logits=logits, next=following)
