// What a page of a user does; test_pages.py bundles it, and serves it as it is, too.
import { connect, liveTensors, Tensor } from "dlpack-web";
import { fit } from "dlpack-web/exchange";
import { fromNdarray, toNdarray } from "dlpack-web/ndarray";

/** @param options - for connect(): a bundler that leaves `new URL(…)` alone needs `wheel` */
async function run(options) {
  const { loadPyodide } = await import(/* @vite-ignore */ `${location.origin}/pyodide/pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: `${location.origin}/pyodide/` });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const bridge = await connect(pyodide, options);
  const array = pyodide.runPython("import numpy as np; np.arange(6.0).reshape(2, 3).T");
  const tensor = bridge.tensor(array);
  const chunk = toNdarray(null, tensor);
  const back = fromNdarray(null, chunk);
  const packed = fit(back);
  const result = { shape: back.shape, values: [...packed.data], isTensor: back instanceof Tensor };
  for (const each of [tensor, back, packed]) each.release();
  chunk.data = null; // lets go of the memory, as the garbage collector would in time
  array.destroy();
  return { ...result, live: liveTensors() };
}

globalThis.run = run;
dispatchEvent(new Event("run"));
