// Answers the kit's measurements, in a Deno of its own: Python, a device, and rows of tests/bench.

import * as library from "/js/index.js";
import { connect } from "/js/index.js";
import { poolOf } from "/js/webgpu/buffers/pool.js";
import { useDevice } from "/js/webgpu/device/device.js";
import { download } from "/tests/bench/rows/downloads.mjs";
import { requestDevice, settling } from "/tests/bench/rows/gpu.mjs";
import { handover } from "/tests/bench/rows/handover.mjs";
import { calls, elementwise, reduction, replay } from "/tests/bench/rows/kernels.mjs";
import { measureRow, sizesOf, spread } from "/tests/bench/rows/measure.mjs";
import { loadPython } from "/tests/bench/rows/python.mjs";
import { upload } from "/tests/bench/rows/uploads.mjs";
import { answer } from "/tests/runtimes/host.mjs";

const MB = 2 ** 20;
const ROWS = [calls, handover, replay, elementwise, reduction, upload, download];
const SETTLES = 5; // a batch takes at least so many times what waiting for it does
const FILTERS = ["out-of-memory", "internal", "validation"];

let context = null;
let waitMs = 0;

/** `start` as for the harness of the pages. Resolves to what waiting takes: Deno looks every 10 ms. */
async function start({ pyodideDir, wheel, root }) {
  const { loadPyodide } = await import(`${pyodideDir}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: root + pyodideDir });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const bridge = await connect(pyodide, { wheel: new URL(wheel, location).href });
  const device = await requestDevice();
  const pool = poolOf(useDevice(device)); // a private part, for what is cold
  const python = await loadPython(pyodide);
  context = { pyodide, python, bridge, device, pool, library };
  const settle = settling(device);
  const samples = [];
  for (let i = 0; i < 10; i++) {
    const begun = performance.now();
    await settle();
    samples.push(performance.now() - begun);
  }
  waitMs = spread(samples).median;
  return { wait_ms: waitMs };
}

/** Sizes of rows, the small ones first. */
const plan = (quick) =>
  sizesOf(ROWS, quick ? MB : Infinity)
    .map(({ row, layout, bytes }) => ({ path: row.path, layout, bytes }))
    .sort((a, b) => a.bytes - b.bytes);

/** `{rows, left_out, wrong}`: ways that fail are left out, with the reason. */
async function measure({ path, layout, bytes }, quick) {
  const { device } = context;
  if (bytes > device.limits.maxBufferSize) {
    throw new Error(`this device has buffers of ${device.limits.maxBufferSize} bytes at most`);
  }
  const [left_out, wrong] = [[], []];
  const options = {
    bytes,
    layout,
    rounds: quick ? 5 : bytes >= 64 * MB ? 7 : 15,
    failed(way, { message }) {
      const list = message.startsWith("wrong result") ? wrong : left_out;
      list.push({ way, reason: message });
    },
  };
  // Waiting is not what is measured: where it is long, so are the batches.
  if (!quick) {
    options.sampleMs = Math.max(5, SETTLES * waitMs);
    options.larger = ({ settle }) => settle && { maxBatch: 20_000 };
  }
  const row = ROWS.find((each) => each.path === path);
  for (const filter of FILTERS) device.pushErrorScope(filter);
  const { rows, problem } = await measureRow(row, context, options).then(
    (rows) => ({ rows }),
    (problem) => ({ problem }),
  );
  // Memory that runs out is reported only here; what was pushed first is the cause.
  const errors = await Promise.all(FILTERS.map(() => device.popErrorScope()));
  const error = errors.reverse().find((each) => each);
  if (error) throw new Error(`${error.constructor.name}: ${error.message}`);
  if (problem) throw problem;
  return { rows, left_out, wrong };
}

await answer({ start, plan, measure });
