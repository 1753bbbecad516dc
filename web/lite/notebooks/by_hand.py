# %% [markdown]
# # The same by hand
# What the tour does, without dlpack-web: WebGPU's own calls from Python. It copies the array into
# JavaScript's memory on the way up, and twice on the way down.

# %%
import js
import numpy as np
from pyodide.ffi import to_js


def plain(**fields):
    return to_js(fields, dict_converter=js.Object.fromEntries)


adapter = await js.navigator.gpu.requestAdapter()
device = await adapter.requestDevice()
a = np.arange(6, dtype=np.float32).reshape(2, 3)

# %%
STORAGE, COPY_DST, COPY_SRC, MAP_READ = 0x80, 0x08, 0x04, 0x01
size = a.nbytes + 15 & ~15
x, y = (
    device.createBuffer(plain(size=size, usage=STORAGE | COPY_DST | COPY_SRC))
    for _ in "xy"
)
device.queue.writeBuffer(x, 0, to_js(a.ravel()))

# %%
code = """
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
    }
"""
module = device.createShaderModule(plain(code=code))
compute = plain(module=module, entryPoint="main")
pipeline = device.createComputePipeline(plain(layout="auto", compute=compute))
entries = [plain(binding=i, resource=plain(buffer=b)) for i, b in enumerate((x, y))]
layout = pipeline.getBindGroupLayout(0)
group = device.createBindGroup(plain(layout=layout, entries=to_js(entries)))
encoder = device.createCommandEncoder()
work = encoder.beginComputePass()
work.setPipeline(pipeline)
work.setBindGroup(0, group)
work.dispatchWorkgroups(1)
work.end()
staging = device.createBuffer(plain(size=size, usage=MAP_READ | COPY_DST))
encoder.copyBufferToBuffer(y, 0, staging, 0, size)
device.queue.submit(to_js([encoder.finish()]))

# %%
await staging.mapAsync(MAP_READ)
values = js.Float32Array.new(staging.getMappedRange().slice(0, a.nbytes))
np.asarray(values.to_py()).reshape(2, 3)
