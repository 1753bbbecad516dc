// Runs of Python's sessions: twenty small ones against onnxruntime-web's own run() of the same feeds,
// and one with a large input against what pages do that copy it by to_js().

import { connect } from "/js/index.js";
import { onnxruntime } from "/packages-js/onnxruntime/pyodide.js";

const FILE = "/libraries/ort/ort.webgpu.bundle.min.mjs";
const SMALL = 20; // runs, as sessions.py has them
// Until then browsers run the WebAssembly of both that they compiled first, which is slower.
const WARM = 150;

/** The Python of it, once. */
async function module(pyodide) {
  await connect(pyodide, { packages: [onnxruntime] });
  for (const [name, url] of [
    ["onnx_models", "../models/onnx_models.py"],
    ["sessions", "sessions.py"],
  ]) {
    const source = await (await fetch(new URL(url, import.meta.url))).text();
    pyodide.FS.writeFile(`${name}.py`, source);
  }
  return pyodide.runPythonAsync("import sessions\nsessions");
}

/** `{ways, done}`; `layout` is "small" or "large". */
export async function sessionWays({ pyodide }, bytes, layout) {
  const sessions = await module(pyodide);
  const ort = await import(FILE);
  const made =
    layout === "small"
      ? await sessions.small.callPromising()
      : await sessions.large.callPromising(ort, bytes / 4);
  const found = made.toJs({ depth: 1, dict_converter: Object.fromEntries });
  const ways = Object.entries(found)
    .filter(([name]) => name !== "model")
    .map(([name, run]) => ({
      name,
      each: () => run.callPromising(),
      verify: async () => {
        if ((await run.callPromising()) !== 2) throw new Error(`wrong result: ${name}`);
      },
    }));
  if (layout === "small") {
    ways.push(await ownWay(ort, found.model));
    for (const { each } of ways) await repeated(each, WARM);
  }
  return { ways, done: () => made.destroy() };
}

async function repeated(each, times) {
  for (let i = 0; i < times; i++) await each();
}

async function ownWay(ort, model) {
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const x = new ort.Tensor(
    "float32",
    Float32Array.from({ length: 16 }, (_, i) => i),
    [16],
  );
  let y;
  const each = async () => {
    for (let i = 0; i < SMALL; i++) ({ y } = await session.run({ x }));
  };
  return {
    name: "own run",
    each,
    async verify() {
      await each();
      if (y.data[1] !== 2) throw new Error("wrong result: own run");
    },
  };
}
