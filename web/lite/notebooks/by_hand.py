# %% [markdown]
# # The same by hand
# The steps of the tour without dlpack-web: WebGPU's own calls from Python. In the
# browser these are JavaScript's: the array is copied into JavaScript's memory on the
# way up, and twice on the way down. On the desktop they are those of the package
# `wgpu`.

# %%
import sys

import numpy as np

BROWSER = sys.platform == "emscripten"
if BROWSER:
    import js
    from pyodide.ffi import to_js

    def plain(**fields):
        return to_js(fields, dict_converter=js.Object.fromEntries)

    adapter = await js.navigator.gpu.requestAdapter()
    device = await adapter.requestDevice()
else:
    import wgpu

    adapter = await wgpu.gpu.request_adapter_async()
    device = await adapter.request_device_async()
a = np.arange(6, dtype=np.float32).reshape(2, 3)

# %%
STORAGE, COPY_DST, COPY_SRC, MAP_READ = 0x80, 0x08, 0x04, 0x01
usage = STORAGE | COPY_DST | COPY_SRC
size = a.nbytes + 15 & ~15
if BROWSER:
    x, y = (device.createBuffer(plain(size=size, usage=usage)) for _ in "xy")
    device.queue.writeBuffer(x, 0, to_js(a.ravel()))
else:
    x, y = (device.create_buffer(size=size, usage=usage) for _ in "xy")
    device.queue.write_buffer(x, 0, a)

# %%
code = """
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
    }
"""
if BROWSER:
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
else:
    module = device.create_shader_module(code=code)
    compute = {"module": module, "entry_point": "main"}
    pipeline = device.create_compute_pipeline(layout="auto", compute=compute)
    entries = [{"binding": i, "resource": {"buffer": b}} for i, b in enumerate((x, y))]
    layout = pipeline.get_bind_group_layout(0)
    group = device.create_bind_group(layout=layout, entries=entries)
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(1)
    work.end()
    staging = device.create_buffer(size=size, usage=MAP_READ | COPY_DST)
    encoder.copy_buffer_to_buffer(y, 0, staging, 0, size)
    device.queue.submit([encoder.finish()])

# %%
if BROWSER:
    await staging.mapAsync(MAP_READ)
    values = js.Float32Array.new(staging.getMappedRange().slice(0, a.nbytes)).to_py()
else:
    await staging.map_async(MAP_READ)
    values = np.frombuffer(staging.read_mapped(0, a.nbytes), np.float32)
np.asarray(values).reshape(2, 3)
