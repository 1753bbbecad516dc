// What answers the kit's measurements, in a Deno of its own: Python, a device, and the ways of
// tests/bench side by side with those that only a real GPU can tell the worth of.
import { connect } from "/js/index.js";
import * as library from "/js/index.js";
import { useDevice } from "/js/webgpu/device.js";
import { compare } from "/tests/bench/measure.mjs";
import { dispatchWays, downloadWays, uploadWays } from "/tests/bench/paths.mjs";
import { answer } from "/tests/runtimes/host.mjs";
import { copyWay, downloadInPieces, gatherWays, handoverWays, uploadInPieces } from "./ways.mjs";

let context = null;

async function requestDevice() {
  const adapter = await navigator.gpu.requestAdapter();
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  return adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
}

/** `{pyodideDir, wheel, root}`, as for the harness of the pages. */
async function start({ pyodideDir, wheel, root }) {
  const { loadPyodide } = await import(`${pyodideDir}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: root + pyodideDir });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const bridge = await connect(pyodide, { wheel: new URL(wheel, location).href });
  const device = await requestDevice();
  const { pool } = useDevice(device); // a private part, for what is cold
  context = { pyodide, bridge, device, pool, library };
}

/** `{ways, done}` of all ways together. */
function together(...parts) {
  return {
    ways: parts.flatMap(({ ways }) => ways),
    done: () => parts.map(({ done }) => done()),
  };
}

function waysFor(path, layout, bytes) {
  switch (path) {
    case "dispatch":
      return dispatchWays(context, bytes);
    case "handover":
      return handoverWays(context, bytes, layout);
    case "download":
      return together(
        downloadWays(context, bytes),
        copyWay(context, bytes),
        downloadInPieces(context, bytes),
      );
    case "upload":
      return together(
        uploadWays(context, bytes, layout),
        copyWay(context, bytes),
        layout === "contiguous"
          ? uploadInPieces(context, bytes)
          : gatherWays(context, bytes, layout),
      );
  }
  throw new TypeError(`no path ${path}`);
}

/** What the GPU says to the work in between; memory that runs out is told here alone. */
async function watched(device, work) {
  const filters = ["out-of-memory", "internal", "validation"];
  for (const filter of filters) device.pushErrorScope(filter);
  try {
    return await work();
  } finally {
    const errors = await Promise.all(filters.map(() => device.popErrorScope()));
    const error = errors.find((each) => each);
    if (error) throw new Error(`${error.constructor.name}: ${error.message}`);
  }
}

/** `{rows, left_out, wrong}`: ways that fail are left out, and told; those that lie are wrong. */
async function measure({ path, layout, bytes, rounds }) {
  const { device, pool } = context;
  if (bytes > device.limits.maxBufferSize) {
    throw new Error(`this device has buffers of ${device.limits.maxBufferSize} bytes at most`);
  }
  const [left_out, wrong] = [[], []];
  const failed = ({ name: way }, error) => {
    const list = /wrong result/.test(error.message) ? wrong : left_out;
    list.push({ way, reason: error.message });
  };
  const rows = await watched(device, async () => {
    const { ways, done } = waysFor(path, layout, bytes);
    try {
      return await compare(ways, { rounds, failed });
    } catch (error) {
      failed({ name: "one that was right at first" }, error);
      return [];
    } finally {
      done();
      pool.drop();
    }
  });
  return { rows, left_out, wrong };
}

await answer({ start, measure });
