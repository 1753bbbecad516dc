# %% [markdown]
# # dlpack-web: the tour
# NumPy, JavaScript and the GPU share the same memory. Everything here runs in this
# browser; without the JavaScript it also runs on the desktop, over
# wgpu-py.

# %%
# %pip install dlpack-web
import numpy as np

import dlpack_web as dlw

dlw.features()["webgpu"]["available"]

# %% [markdown]
# ## NumPy ⇄ JavaScript: no copy
# A `Tensor` keeps memory alive until you release it. JavaScript sees it as a typed
# array.

# %%
a = np.arange(6, dtype=np.float32).reshape(2, 3)
t = dlw.from_dlpack(a)
t

# %%
if dlw.features()["browser"]:
    view = t.js.data  # a Float32Array over NumPy's own bytes
else:
    view = np.asarray(t).reshape(-1)  # on the desktop, another array over them
view[4] = 40
a

# %% [markdown]
# ## NumPy → GPU: one copy, nothing to await

# %%
device = await dlw.webgpu.request_device()
x = t.to_device(device)
x.shape, str(x.device), x.gpu_buffer.size

# %% [markdown]
# ## A kernel in WGSL

# %%
square = dlw.webgpu.Kernel("""
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
    }
""")
y = dlw.empty(x.shape, device=device)
square(x, y)

# %% [markdown]
# ## GPU → NumPy: one copy
# On the desktop, and in browsers with JSPI, Python waits automatically.
# `await y.to_host()` works everywhere.

# %%
np.asarray(y) if dlw.features()["canBlock"] else await y.to_host()

# %%
bool((await y.to_host() == a * a).all())

# %%
for each in (t, x, y):
    each.release()
t.released, x.released, y.released
