// Squares in NumPy, away from the page's thread.
import { connect } from "./node_modules/dlpack-web/js/dist/index.js";

const { loadPyodide } = await import("./node_modules/pyodide/pyodide.mjs");
const pyodide = await loadPyodide();
await pyodide.loadPackage("numpy");
const bridge = await connect(pyodide);

const array = pyodide.runPython("import numpy as np; np.arange(6.0).reshape(2, 3) ** 2");
const tensor = bridge.tensor(array);
const message = tensor.transfer(); // one copy: Python's memory stays Python's
postMessage(message, [message.buffer]);
tensor.release();
array.destroy();
