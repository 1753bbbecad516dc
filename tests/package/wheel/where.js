// where.js FOLDER: what web/where_it_runs.py asks, where Pyodide may be without NumPy.
import { connect } from "dlpack-web";
import { features } from "dlpack-web/features";

const [, , folder] = globalThis.process.argv;
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const pyodide = await loadPyodide({ indexURL: folder });
const bridge = await connect(pyodide);
const bytes = pyodide.runPython("held = bytearray(b'abc'); held");
const tensor = bridge.tensor(bytes);
tensor.data[0] = 120;
tensor.release();
bytes.destroy();
const { webgpu, shaderF16, timestampQuery } = await features();
const waits = `
import asyncio
from pyodide.ffi import run_sync

async def soon():
    await asyncio.sleep(0.01)
    return True

try:
    waits = run_sync(soon())
except RuntimeError:
    waits = False
waits`;
const facts = {
  cpu: pyodide.runPython("held[0] == 120"),
  webgpu: webgpu.available,
  float16: webgpu.available && shaderF16,
  timestamps: webgpu.available && timestampQuery,
  waits: await pyodide.runPythonAsync(waits),
  canvases: webgpu.available && typeof OffscreenCanvas === "function",
};
console.log(JSON.stringify(facts));
