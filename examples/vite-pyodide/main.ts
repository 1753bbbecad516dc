// NumPy's memory as a typed array, in an application that Vite bundles.
import { connect } from "dlpack-web";

// Pyodide is served from public/ as it is: it loads its other files, and packages, from its own folder.
const folder = new URL(`${import.meta.env.BASE_URL}pyodide/`, location.href);
const { loadPyodide } = await import(/* @vite-ignore */ `${folder}pyodide.mjs`);
const pyodide = await loadPyodide();
await pyodide.loadPackage("numpy");
const bridge = await connect(pyodide); // installs the wheel from the npm package

const array = pyodide.runPython("import numpy as np; a = np.arange(6.0).reshape(2, 3); a");
const tensor = bridge.tensor(array); // no copy
tensor.data[0] = 42;
tensor.release();
array.destroy();
const out = document.querySelector("#out") as HTMLOutputElement;
out.textContent = pyodide.runPython("str(a.tolist())");
