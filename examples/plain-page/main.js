// NumPy's memory as a typed array: what JavaScript writes, Python sees.
import { connect } from "dlpack-web";

const { loadPyodide } = await import("./node_modules/pyodide/pyodide.mjs");
const pyodide = await loadPyodide();
await pyodide.loadPackage("numpy");
const bridge = await connect(pyodide);

const array = pyodide.runPython("import numpy as np; a = np.arange(6.0).reshape(2, 3); a");
const tensor = bridge.tensor(array); // no copy
tensor.data[0] = 42;
tensor.release();
array.destroy();
document.querySelector("#out").textContent = pyodide.runPython("str(a.tolist())");
