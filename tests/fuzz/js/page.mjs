// Runs inside the page: starts a Pyodide with dlpack-web in it, and the suites that run.py names.
import "./watch.mjs"; // first: the library must not come to WebGPU and timers before it

// CDP lifts the eval ban for the code it calls itself; a task of our own is under it again.
const ownTask = () => new Promise((resolve) => setTimeout(resolve));

const context = {};

/** `pyodideDir` and `wheel` are URL paths. */
async function start({ pyodideDir, wheel }) {
  await ownTask();
  const { loadPyodide } = await import(`${pyodideDir}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: new URL(pyodideDir, location).href });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const library = await import("/js/index.js");
  const exchange = await import("/js/exchange/index.js");
  const bridge = await library.connect(pyodide, { wheel: new URL(wheel, location).href });
  Object.assign(context, { pyodide, bridge, library, exchange });
}

/** Calls the function `run` of a module beside this one; errors come as text. */
async function run(module, options) {
  await ownTask();
  try {
    const suite = await import(`./${module}.mjs`);
    return await suite.run(context, options);
  } catch (error) {
    return { problem: `${error}\n${error.stack}` };
  }
}

globalThis.fuzz = { start, run, context };
dispatchEvent(new Event("fuzz"));
