// pyodide.js FOLDER: a real Pyodide, for runtimes without pages; JavaScript writes to Python's memory.
import { connect, liveTensors } from "dlpack-web";

const [, , folder] = globalThis.process.argv;
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const pyodide = await loadPyodide({ indexURL: folder });
const bridge = await connect(pyodide);
const bytes = pyodide.runPython("held = bytearray(b'abc'); held");
const tensor = bridge.tensor(bytes);
tensor.data[0] = 120;
tensor.release();
bytes.destroy();
console.log(pyodide.runPython("held.decode()"), liveTensors());
