# %% [markdown]
# # onnxruntime-web, fed from Python
# A network that recognizes handwritten digits runs in this kernel, on the same GPU
# device as our tensors: its inputs and outputs are `GPUBuffer`s that never leave the
# GPU. The desktop's `onnxruntime` has no WebGPU, so there they pass through NumPy.

# %%
# %pip install dlpack-web pillow
import numpy as np
from PIL import Image

import dlpack_web as dlw

BROWSER = dlw.features()["browser"]
if BROWSER:
    import js
    from pyodide.code import run_js
    from pyodide.ffi import to_js

    # This site provides onnxruntime-web and the model beside its notebooks.
    SITE = js.location.origin
    load = run_js("(url) => import(url)")
    ort = await load(f"{SITE}/libraries/ort/ort.webgpu.bundle.min.mjs")
    ort.env.wasm.numThreads = 1
    ort.env.wasm.wasmPaths = f"{SITE}/libraries/ort/"
    ort.env.logLevel = "error"
    version = ort.env.versions.web
else:
    import onnxruntime as ort

    version = ort.__version__
version

# %%
device = await dlw.webgpu.request_device()
if BROWSER:
    network = await dlw.adapter("ort", ort)
    await network.use_device(device)  # before its first session
    options = to_js(
        {"executionProviders": ["webgpu"], "preferredOutputLocation": "gpu-buffer"},
        dict_converter=js.Object.fromEntries,
    )
    session = await ort.InferenceSession.create(f"{SITE}/model/digits.onnx", options)
    names = list(session.inputNames), list(session.outputNames)
else:
    session = ort.InferenceSession("digits.onnx")
    names = (
        [each.name for each in session.get_inputs()],
        [each.name for each in session.get_outputs()],
    )
names

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
# ## Into the network and out of it

# %%
x = dlw.from_dlpack(digits, device=device)
if BROWSER:
    feed = network.to_js(x, copy=False)
    feeds = to_js({"pixels": feed}, dict_converter=js.Object.fromEntries)
    result = (await session.run(feeds)).logits
    logits = network.from_js(result)
else:
    (result,) = session.run(None, {"pixels": await x.to_host()})
    logits = dlw.from_dlpack(result, device=device)
logits

# %%
labels = (await logits.to_host()).argmax(1)
labels[:20].tolist()

# %%
if BROWSER:
    for each in (feed, result):
        each.dispose()
for each in (x, logits):
    each.release()
x.released, logits.released
