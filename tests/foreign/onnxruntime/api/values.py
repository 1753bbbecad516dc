"""OrtValues, a binding, and a session whose output is its next input."""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("dynamic.onnx", providers=sys.argv[1:])
a = np.random.default_rng(4).random((6, 6), dtype=np.float32)

value = ort.OrtValue.ortvalue_from_numpy(a)
print(
    value.shape(),
    value.data_type(),
    value.is_tensor(),
    np.array_equal(value.numpy(), a),
)

(distances,) = session.run_with_ort_values(["distances"], {"a": value, "b": value})
print(distances.shape(), distances.data_type())

binding = session.io_binding()
binding.bind_cpu_input("a", a)
binding.bind_cpu_input("b", a)
binding.bind_output("distances")
session.run_with_iobinding(binding)
(bound,) = binding.copy_outputs_to_cpu()
print(np.array_equal(bound, distances.numpy()))

for _ in range(5):
    (distances,) = session.run_with_ort_values(
        ["distances"], {"a": distances, "b": value}
    )
np.savez("outputs.npz", bound=bound, last=distances.numpy())
