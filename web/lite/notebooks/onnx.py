# %% [markdown]
# # onnxruntime-web, fed from Python
# A network that knows handwritten digits runs in this kernel, on the same GPU device as our
# tensors: what it is given and what it gives are `GPUBuffer`s that never leave the GPU.

# %%
# %pip install dlpack-web pillow
import js
import numpy as np
from PIL import Image
from pyodide.code import run_js
from pyodide.ffi import to_js

import dlpack_web as dlw

load = run_js("(url) => import(url)")
SITE = (
    js.location.origin
)  # this site has onnxruntime-web and the model beside its notebooks
ort = await load(f"{SITE}/libraries/ort/ort.webgpu.bundle.min.mjs")
ort.env.wasm.numThreads = 1
ort.env.wasm.wasmPaths = f"{SITE}/libraries/ort/"
ort.env.logLevel = "error"
ort.env.versions.web

# %%
device = await dlw.webgpu.request_device()
network = await dlw.adapter("ort", ort)
await network.use_device(device)  # before its first session
options = {"executionProviders": ["webgpu"], "preferredOutputLocation": "gpu-buffer"}
options = to_js(options, dict_converter=js.Object.fromEntries)
session = await ort.InferenceSession.create(f"{SITE}/model/digits.onnx", options)
list(session.inputNames), list(session.outputNames)

# %% [markdown]
# ## A photograph of digits, evened out by NumPy

# %%
photo = np.asarray(Image.open("digits.png")).astype(np.float32)[..., 0]
cells = photo.reshape(10, 48, 20, 48)
cells = cells / np.percentile(cells, 98, axis=(1, 3), keepdims=True)
ink = 1 - cells[:, 8:-8, :, 8:-8].reshape(10, 8, 4, 20, 8, 4).mean(axis=(2, 5))
digits = (ink / np.percentile(ink, 99.5)).clip(0, 1).transpose(0, 2, 1, 3)
digits = np.ascontiguousarray(digits.reshape(200, 64))
digits.shape

# %% [markdown]
# ## Into the network and out of it, on the GPU

# %%
x = dlw.from_dlpack(digits, device=device)
feed = network.to_js(x, copy=False)
feeds = to_js({"pixels": feed}, dict_converter=js.Object.fromEntries)
result = (await session.run(feeds)).logits
logits = network.from_js(result)
logits

# %%
labels = (await logits.to_host()).argmax(1)
labels[:20].tolist()

# %%
for each in (feed, result):
    each.dispose()
for each in (x, logits):
    each.release()
x.released, logits.released
