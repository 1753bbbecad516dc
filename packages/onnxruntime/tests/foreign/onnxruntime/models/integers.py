"""Indices as NumPy makes them, which are int64 where a model wants that: nothing is said of dtypes."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("transformer.onnx", providers=sys.argv[1:])
(tokens,) = session.get_inputs()
ids = np.arange(tokens.shape[1]).reshape(1, -1)
for _ in range(3):
    hidden, logits, following = session.run(None, {tokens.name: ids})
    ids = logits.argmax(axis=-1)
    print(ids.tolist(), np.array_equal(ids, following), following.dtype)

binding = session.io_binding()
binding.bind_cpu_input(tokens.name, np.array([[1, 2, 3] * 4]))
for each in session.get_outputs():
    binding.bind_output(each.name)
session.run_with_iobinding(binding)
print(binding.copy_outputs_to_cpu()[2].tolist())

value = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 12), int))
(chosen,) = session.run_with_ort_values(["next"], {tokens.name: value})
print(chosen.numpy().tolist())

try:
    session.run(None, {tokens.name: ids.astype(float)})
except Exception as error:  # noqa: BLE001 - which one is printed
    print(type(error).__name__, error)
np.savez("outputs.npz", hidden=hidden, logits=logits)
