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

import js
from js import harness
from pyodide.ffi import to_js

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

def in_js(values):
    return to_js(values, dict_converter=js.Object.fromEntries)

library = await harness.load("/libraries/ort/ort.webgpu.bundle.min.mjs")
library.env.wasm.wasmPaths = js.URL.new("/libraries/ort/", js.location.href).href
ort = await dlw.adapter("ort", library)
device = await ort.use_device(await dlw.webgpu.request_device())
model = await (await pyfetch("/model/digits.onnx")).bytes()
session = await library.InferenceSession.create(
    to_js(model),
    in_js({"executionProviders": ["webgpu"], "preferredOutputLocation": "gpu-buffer"}),
)
file = dict(await dlw.open(await (await pyfetch("/model/digits_tflite.npz")).bytes()))
pixels = dlw.from_dlpack(file["pixels"], device=device)

results = await session.run(in_js({"pixels": ort.to_js(pixels)}))
theirs = await ort.from_js(results.logits).to_host()

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
