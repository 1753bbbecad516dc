"""The chain's digit model in tinygrad's ONNX runner and in onnxruntime-web, in one page, on one
device: the same numbers, of the same GPU tensor."""

from __future__ import annotations

import json
from collections.abc import Callable

from pages import TestPage
from tinygrad_page import LOAD

READ = """
import json
import numpy as np
from pyodide.http import pyfetch

import dlpack_web as dlw
from dlpack_web import onnxruntime as ort
import dlpack_web_tinygrad as dlwt

ort.install()
import onnxruntime

model = await (await pyfetch("/model/digits.onnx")).bytes()
session = await onnxruntime.InferenceSession.create(
    model, providers=["WebGPUExecutionProvider"]
)
file = dict(await dlw.open(await (await pyfetch("/model/digits_tflite.npz")).bytes()))
pixels = dlw.from_dlpack(file["pixels"], device="webgpu")

feeds = {"pixels": onnxruntime.OrtValue.from_dlpack(pixels)}
(theirs,) = await session.run_with_ort_values_async(["logits"], feeds)
theirs = await dlw.from_dlpack(theirs).to_host()

dlwt.install(pixels.device)
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

with open("digits.onnx", "wb") as out:
    out.write(model)
runner = OnnxRunner("digits.onnx")
copies = dlw.webgpu.stats()[pixels.device.id]["copies"]
shared = dlwt.from_dlpack(pixels)
assert dlw.webgpu.stats()[pixels.device.id]["copies"] == copies
logits = runner({"pixels": shared})["logits"]
ours = await dlwt.to_host(logits)

numpy = file["logits"].numpy()
json.dumps({
    "shape": ours.shape,
    "devices": [logits.device, str(pixels.device)],
    "apart": float(np.abs(ours - theirs).max()),
    "from_numpy": float(np.abs(ours - numpy).max()),
    "size": float(np.abs(numpy).max()),
    "labels": bool((ours.argmax(1) == theirs.argmax(1)).all()),
})
"""


def test_the_digit_model_gives_the_numbers_of_onnxruntime(
    open_test_page: Callable[..., TestPage],
) -> None:
    page = open_test_page()
    page.python(LOAD)
    found = json.loads(str(page.python(READ)))
    assert found["shape"] == [200, 10]
    assert found["devices"] == ["WEBGPU", "webgpu:0"]
    assert found["size"] > 5
    # Sums of up to 64 products of about 1, in another order.
    assert found["apart"] < 1e-4
    assert found["from_numpy"] < 1e-4
    assert found["labels"]
    assert page.watch.complaints() == []
