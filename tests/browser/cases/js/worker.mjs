// The bridge in a module worker: what worker_cases.mjs talks to.
import { boot } from "/boot.mjs";
import { liveTensors, Tensor, webgpu } from "/js/index.js";

let booted;

const tasks = {
  /** NumPy doubles a tensor that came from the page, on this thread's own GPU. */
  async double(message) {
    const { pyodide, bridge } = await booted;
    const device = await webgpu.requestDevice();
    const kernel = new webgpu.Kernel(
      device,
      `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
       @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
         if (id.x < arrayLength(&x)) { x[id.x] *= 2; } }`,
    );
    const arrived = Tensor.receive(message);
    const proxy = bridge.toPython(arrived);
    pyodide.globals.set("x", proxy);
    const array = pyodide.runPython("import numpy as np; np.asarray(x) + 1");
    const host = bridge.tensor(array);
    const gpu = host.to(device);
    kernel.run([gpu], { workgroups: 1 });
    const result = bridge.empty(gpu.shape);
    await gpu.read(result);
    for (const each of [arrived, host, gpu]) each.release();
    pyodide.runPython("del x");
    for (const each of [proxy, array]) each.destroy();
    return result.transfer();
  },

  async post_gpu() {
    const device = await webgpu.requestDevice();
    const host = Tensor.fromTypedArray(new Float32Array(4));
    const gpu = host.to(device);
    try {
      postMessage(gpu);
    } catch (error) {
      return { name: error.name, message: error.message };
    } finally {
      host.release();
      gpu.release();
    }
    return null;
  },
};

addEventListener("message", async ({ data: { task, message } }) => {
  booted ??= boot(() => {});
  try {
    await booted;
    const result = await tasks[task](message);
    postMessage({ result, live: liveTensors() }, result?.buffer ? [result.buffer] : []);
  } catch (error) {
    postMessage({ problem: error.stack });
  }
});
