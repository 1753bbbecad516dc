// Runs node tests in Pyodide, by node_case.py: as in a page, but where it can be ended.
import { boot } from "/boot.mjs";

let judge;

async function start() {
  const { pyodide } = await boot(() => {});
  const source = await (await fetch("/tests/models/node_case.py")).text();
  pyodide.FS.writeFile("node_case.py", source);
  pyodide.runPython("import sys; sys.path.insert(0, '.')");
  await pyodide.runPythonAsync(`
import json

import dlpack_web.onnxruntime as ort
import node_case
`);
  // run_sync waits where Python was entered by a call that may wait: runPythonAsync is one.
  judge = async ({ name, provider }) => {
    const response = await fetch(`/nodes/${name}.npz`);
    if (!response.ok) return ["died", `${name}.npz: ${response.status}`];
    pyodide.FS.writeFile("case.npz", new Uint8Array(await response.arrayBuffer()));
    pyodide.globals.set("provider", provider);
    const outcome = await pyodide.runPythonAsync(
      "json.dumps(node_case.judge(ort, 'case.npz', provider))",
    );
    return JSON.parse(outcome);
  };
  return ["ready", ""];
}

addEventListener("message", async ({ data }) => {
  try {
    postMessage(data === "start" ? await start() : await judge(data));
  } catch (error) {
    postMessage(["died", `${error.message ?? error}`.slice(-600)]);
  }
});
