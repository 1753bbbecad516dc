"""Convolutions over two pictures; one of the two outputs is asked for by its name, too."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("convolution.onnx", providers=sys.argv[1:])
for each in session.get_inputs() + session.get_outputs():
    print(each.name, each.type, each.shape)

image = np.random.default_rng(1).random((2, 3, 16, 16), dtype=np.float32)
features, scores = session.run(None, {"image": image})
(only,) = session.run(["scores"], {"image": image})
print(features.shape, scores.dtype, np.array_equal(scores, only))

# What lies in memory the other way round is the same picture.
turned = np.asfortranarray(image)
(again,) = session.run(["scores"], {"image": turned})
print(np.array_equal(scores, again))
np.savez("outputs.npz", features=features, scores=scores)
