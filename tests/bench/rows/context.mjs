// What rows work with, in pages and in runtimes without them.
import { poolOf } from "../../../js/webgpu/buffers/pool.js";
import { useDevice } from "../../../js/webgpu/device/device.js";
import { settling } from "./gpu.mjs";
import { spread } from "./measure.mjs";

/** Imports a file of Python; resolves to its module. */
export async function pythonModule(pyodide, url) {
  const file = url.pathname.split("/").at(-1);
  pyodide.FS.writeFile(file, await (await fetch(url)).text());
  const name = file.replace(".py", "");
  // Where Python can wait, tinygrad's kernels of an earlier visit are there at once.
  return pyodide.runPythonAsync(`import ${name}\n${name}`);
}

/** How far apart two readings of the clock are at least, and how long waiting for an idle GPU takes; in ms. */
async function clocks(settle) {
  const read = () => performance.now();
  const start = read();
  let end = start;
  while (end === start) end = read();
  const waits = [];
  for (let i = 0; i < 6; i++) {
    const before = read();
    await settle();
    waits.push(read() - before);
  }
  return { tick_ms: end - start, wait_ms: spread(waits).median };
}

/** The context of rows; `device` becomes Python's default, if it is the first. */
export async function contextOf({ pyodide, bridge, device }) {
  const pool = poolOf(useDevice(device)); // a private part, for what is cold
  const settle = settling(device);
  const python = await pythonModule(pyodide, new URL("ways.py", import.meta.url));
  return { pyodide, bridge, device, pool, python, settle, ...(await clocks(settle)) };
}
