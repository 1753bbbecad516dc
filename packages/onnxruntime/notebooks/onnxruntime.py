# %% [markdown]
# # import onnxruntime
# The same cells run on the desktop, with `onnxruntime` itself, and in a page, where
# `dlpack_web_onnxruntime` runs onnxruntime-web on the GPU, with this kernel's own
# tensors. The network, which was trained for this site, reads handwritten digits.

# %%
# %pip install dlpack-web dlpack-web-onnxruntime pillow
import numpy as np
from PIL import Image

import dlpack_web as dlw
import dlpack_web_onnxruntime as onnxruntime

onnxruntime.install()  # in a page, `import onnxruntime` finds it from here on
import onnxruntime as ort

BROWSER = dlw.features()["browser"]

# %%
device = await dlw.webgpu.request_device()  # sessions take it, too
session = ort.InferenceSession("pictures.onnx", providers=ort.get_available_providers())
[
    (each.name, each.type, each.shape)
    for each in session.get_inputs() + session.get_outputs()
]

# %% [markdown]
# ## A photograph of digits, evened out by NumPy

# %%
photo = np.asarray(Image.open("digits.png")).astype(np.float32)[..., 0]
blocks = photo.reshape(10, 12, 4, 20, 12, 4).mean(axis=(2, 5))
blocks = blocks.transpose(0, 2, 1, 3).reshape(200, 1, 12, 12)
paper = blocks.max(axis=(2, 3), keepdims=True)
ink = blocks.min(axis=(2, 3), keepdims=True)
pictures = np.ascontiguousarray(((paper - blocks) / (paper - ink))[..., 2:-2, 2:-2])
pictures.shape, pictures.dtype

# %% [markdown]
# ## As everywhere: arrays in, arrays out

# %%
(logits,) = session.run(None, {"pictures": pictures})
labels = logits.argmax(axis=1)
labels[:20].tolist()

# %% [markdown]
# ## On the GPU, between two kernels
# In a page, an `OrtValue` may be a tensor on the GPU, and the results stay there. The
# desktop's onnxruntime has no WebGPU, so there they pass through NumPy.

# %%
invert = dlw.webgpu.Kernel("""
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      if (id.x < arrayLength(&x)) { x[id.x] = 1 - x[id.x]; }
    }
""")
best = dlw.webgpu.Kernel("""
    @group(0) @binding(0) var<storage, read> logits: array<f32>;
    @group(0) @binding(1) var<storage, read_write> labels: array<i32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      if (id.x >= arrayLength(&labels)) { return; }
      var label = 0u;
      for (var i = 1u; i < 10; i++) {
        if (logits[10 * id.x + i] > logits[10 * id.x + label]) { label = i; }
      }
      labels[id.x] = i32(label);
    }
""")
x = dlw.from_dlpack(1 - pictures, device=device)  # as on a negative
invert(x)
if BROWSER:
    value = ort.OrtValue.from_dlpack(x)
    (result,) = session.run_with_ort_values(["logits"], {"pictures": value})
    logits = dlw.from_dlpack(result)
else:
    (result,) = session.run(None, {"pictures": await x.to_host()})
    logits = dlw.from_dlpack(result, device=device)
found = dlw.empty(200, "int32", device=device)
best(logits, found)
logits

# %%
bool((await found.to_host() == labels).all())

# %% [markdown]
# ## The same errors as on the desktop

# %%
mistakes = [{"pictures": pictures[0]}, {"pictures": pictures.astype(float)}, {}]
for feeds in mistakes:
    try:
        session.run(None, feeds)
    except Exception as error:
        print(type(error).__name__)

# %%
session.run(["logits"], {"pictures": pictures[:3]})[0].argmax(axis=1).tolist()
