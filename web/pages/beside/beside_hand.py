"""By hand: WebGPU's own calls, from Python."""

import js
import numpy as np
from pyodide.ffi import to_js

WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
}
"""
STORAGE, COPY_DST, COPY_SRC, MAP_READ = 0x80, 0x08, 0x04, 0x01


def plain(**fields):
    return to_js(fields, dict_converter=js.Object.fromEntries)


async def start():
    adapter = await js.navigator.gpu.requestAdapter()
    device = await adapter.requestDevice()
    module = device.createShaderModule(plain(code=WGSL))
    compute = plain(module=module, entryPoint="main")
    pipeline = device.createComputePipeline(plain(layout="auto", compute=compute))
    return device, pipeline


async def run(made, a):
    device, pipeline = made
    size = a.nbytes + 15 & ~15
    usage = STORAGE | COPY_DST | COPY_SRC
    x, y = (device.createBuffer(plain(size=size, usage=usage)) for _ in "xy")
    device.queue.writeBuffer(x, 0, to_js(a.ravel()))
    entries = [plain(binding=i, resource=plain(buffer=b)) for i, b in enumerate((x, y))]
    layout = pipeline.getBindGroupLayout(0)
    group = device.createBindGroup(plain(layout=layout, entries=to_js(entries)))
    encoder = device.createCommandEncoder()
    work = encoder.beginComputePass()
    work.setPipeline(pipeline)
    work.setBindGroup(0, group)
    work.dispatchWorkgroups(-(-a.size // 64))
    work.end()
    staging = device.createBuffer(plain(size=size, usage=MAP_READ | COPY_DST))
    encoder.copyBufferToBuffer(y, 0, staging, 0, size)
    device.queue.submit(to_js([encoder.finish()]))
    await staging.mapAsync(MAP_READ)
    values = js.Float32Array.new(staging.getMappedRange().slice(0, a.nbytes))
    result = np.asarray(values.to_py()).reshape(a.shape)
    for buffer in (x, y, staging):
        buffer.destroy()
    return result
