// Two Pyodides on one page, of different versions, and one of them twice; each function is a test.
import { connect, liveTensors, webgpu } from "/js/index.js";
import { counted, equal, ok, throws } from "./expect.mjs";

async function kernel(folder) {
  const { loadPyodide } = await import(`/${folder}/pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: globalThis.harness.indexURL(`/${folder}/`) });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const { file } = await (await fetch("/wheel/wheel.json")).json();
  const bridge = await connect(pyodide, { wheel: new URL(`/wheel/${file}`, location) });
  const python = (code) => pyodide.runPythonAsync(`import numpy as np, dlpack_web as dlw\n${code}`);
  return { pyodide, bridge, python };
}

const kernels = [await kernel("pyodide"), await kernel("pyodide-0.29"), await kernel("pyodide")];

export async function each_has_its_own_bridge() {
  equal(new Set(kernels.map(({ bridge }) => bridge)).size, 3, "bridges");
  for (const { python } of kernels) equal(await python("dlw.live_tensors()"), 0);
}

export async function cpu_tensors_go_from_one_to_the_other_with_one_copy(context) {
  const [a, b] = kernels;
  const proxy = await a.python("dlw.from_dlpack(np.arange(6.0).reshape(2, 3))");
  const x = a.bridge.tensor(proxy);
  const moved = counted(context, () => b.bridge.toPython(x), { copies: 1 });
  const array = moved.numpy();
  equal(array.sum(), 15);
  array.destroy();
  await throws(() => b.bridge.toPython(x, { copy: false }), "CopyError", /Python cannot see/);
  for (const each of [x, proxy, moved]) each.release();
  for (const each of [proxy, moved]) each.destroy();
}

export async function gpu_tensors_go_from_one_to_the_other_without_a_copy(context) {
  const [a, b, c] = kernels;
  const live = liveTensors(); // a case that was skipped may have left some
  const device = await webgpu.requestDevice();
  for (const { pyodide, python } of kernels) {
    pyodide.globals.set("gpu", device);
    await python("device = dlw.webgpu.use_device(gpu)");
  }
  const proxy = await a.python("dlw.from_dlpack(np.arange(6, dtype='f4'), device=device)");
  const x = a.bridge.tensor(proxy);
  for (const { bridge, pyodide, python } of [b, c]) {
    const moved = counted(context, () => bridge.toPython(x), {});
    pyodide.globals.set("moved", moved);
    equal(await python("float((await moved.to_host()).sum())"), 15);
    ok(moved.gpu_buffer === x.buffer, "the same GPUBuffer");
    moved.release();
    moved.destroy();
  }
  x.release();
  proxy.release();
  proxy.destroy();
  for (const { python } of kernels) equal(await python("dlw.live_tensors()"), 0);
  equal(liveTensors(), live);
}

export async function an_object_of_one_is_refused_by_the_other() {
  const [a, b] = kernels;
  const proxy = await a.python("np.arange(3.0)");
  await throws(() => b.bridge.tensor(proxy), "TypeError", /takes a PyProxy of an array/);
  proxy.destroy();
  for (const { python } of kernels) equal(await python("dlw.live_tensors()"), 0);
}
