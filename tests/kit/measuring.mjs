// Answers the kit's measurements, in a Deno of its own: Python, a device, and rows of tests/bench.

import { connect } from "/js/index.js";
import { contextOf } from "/tests/bench/rows/context.mjs";
import { download } from "/tests/bench/rows/downloads.mjs";
import { requestDevice } from "/tests/bench/rows/gpu.mjs";
import { handover } from "/tests/bench/rows/handover.mjs";
import { calls, elementwise, reduction, replay } from "/tests/bench/rows/kernels.mjs";
import { measureRow, sizesOf } from "/tests/bench/rows/measure.mjs";
import { upload } from "/tests/bench/rows/uploads.mjs";
import { answer } from "/tests/runtimes/host.mjs";

const MB = 2 ** 20;
const ROWS = [calls, handover, replay, elementwise, reduction, upload, download];
const FILTERS = ["out-of-memory", "internal", "validation"];

let context = null;

/** `start` as for the harness of the pages. Resolves to what waiting takes. */
async function start({ pyodideDir, wheel, root }) {
  const { loadPyodide } = await import(`${pyodideDir}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: root + pyodideDir });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const bridge = await connect(pyodide, { wheel: new URL(wheel, location).href });
  context = await contextOf({ pyodide, bridge, device: await requestDevice() });
  return context.wait_ms;
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
  const rounds = quick ? 5 : bytes >= 64 * MB ? 7 : 15;
  const options = { bytes, layout, rounds, isLong: !quick };
  const row = ROWS.find((each) => each.path === path);
  for (const filter of FILTERS) device.pushErrorScope(filter);
  const [measured] = await Promise.allSettled([measureRow(row, context, options)]);
  // Memory that runs out is reported only here; what was pushed first is the cause.
  const errors = await Promise.all(FILTERS.map(() => device.popErrorScope()));
  const error = errors.reverse().find((each) => each);
  if (error) throw new Error(`${error.constructor.name}: ${error.message}`);
  if (measured.status === "rejected") throw measured.reason;
  const { rows, failed } = measured.value;
  const isWrong = ({ reason }) => reason.startsWith("wrong result");
  return {
    rows,
    left_out: failed.filter((each) => !isWrong(each)),
    wrong: failed.filter(isWrong),
  };
}

await answer({ start, plan, measure });
