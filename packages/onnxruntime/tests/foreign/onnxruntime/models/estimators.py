"""Ten estimators of scikit-learn, converted by skl2onnx as its documentation does."""

import sys

import numpy as np
import onnxruntime as ort

data = np.load("estimators.npz")
saved = {}
for name in data["names"].tolist():
    providers = [*sys.argv[1:], "CPUExecutionProvider"]
    session = ort.InferenceSession(f"sk_{name}.onnx", providers=providers)
    for each in session.get_inputs() + session.get_outputs():
        print(name, each.name, each.type, each.shape)
    x = data[f"{name}.x"]
    predicted, *more = session.run(None, {session.get_inputs()[0].name: x})
    wanted = data[f"{name}.predicted"]
    if wanted.dtype.kind == "f":
        close = np.allclose(predicted.ravel(), wanted, rtol=1e-4)
    else:
        close = np.array_equal(predicted, wanted)
    print("as scikit-learn predicts:", close)
    if f"{name}.probabilities" in data:
        rows = more[0]
        if isinstance(rows, list):
            print(type(rows[0]).__name__, list(rows[0]), type(rows[0].popitem()[1]))
            (rows,) = session.run([session.get_outputs()[1].name], {"X": x})
            rows = np.array([list(row.values()) for row in rows])
        close = np.allclose(rows, data[f"{name}.probabilities"], atol=1e-5)
        print("with its probabilities:", close)
        saved[f"{name}.probabilities"] = rows.astype(np.float32)
    if wanted.dtype.kind == "f":
        saved[name] = predicted
np.savez("outputs.npz", **saved)
