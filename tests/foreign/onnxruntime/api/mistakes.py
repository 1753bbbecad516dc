"""What goes wrong: the kind of error, and that the session goes on afterwards."""

import sys

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

session = ort.InferenceSession("digits.onnx", providers=sys.argv[1:])
good = np.load("digits.npz")["pixels"]


def kind(call, *kinds):
    try:
        call()
    except kinds as error:
        return type(error).__name__
    return "no error"


run = session.run
wrong = (
    state.InvalidArgument,
    state.Fail,
    state.NoSuchFile,
    state.InvalidProtobuf,
    ValueError,
)
print("shape:", kind(lambda: run(None, {"pixels": good[:, :5]}), *wrong))
print("rank:", kind(lambda: run(None, {"pixels": good[0]}), *wrong))
print("dtype:", kind(lambda: run(None, {"pixels": good.astype(np.float64)}), *wrong))
print("name:", kind(lambda: run(None, {"pixel": good}), *wrong))
print("nothing:", kind(lambda: run(None, {}), *wrong))
print("output:", kind(lambda: run(["logit"], {"pixels": good}), *wrong))
print("no file:", kind(lambda: ort.InferenceSession("none.onnx"), *wrong))
print("no model:", kind(lambda: ort.InferenceSession(b"this is no model"), *wrong))
(logits,) = run(None, {"pixels": good})
print(logits.argmax(axis=1).tolist())
np.savez("outputs.npz", logits=logits)
