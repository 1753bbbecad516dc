// What answers the kit's measurements, in a Deno of its own: Python, a device, and the ways of
// tests/bench side by side with those that only a real GPU can tell the worth of.

import * as library from "/js/index.js";
import { connect } from "/js/index.js";
import { poolOf } from "/js/webgpu/buffers/pool.js";
import { useDevice } from "/js/webgpu/device/device.js";
import { callWays } from "/tests/bench/calls.mjs";
import { compare, spread } from "/tests/bench/measure.mjs";
import { downloadWays, requestDevice, uploadWays } from "/tests/bench/paths.mjs";
import { answer } from "/tests/runtimes/host.mjs";
import { copyWay, handoverWays, kernelWays } from "./ways.mjs";

const MOST_BYTES = 2 ** 28; // of a batch, which drivers may stage all at once
const MOST = 20_000;
const SETTLES = 5; // a batch takes at least so many times what waiting for it does

let context = null;
let waitMs = 0;

/** How long it takes to learn that a queue is done which had next to nothing to do. Deno looks every 10 ms. */
async function measureWait(device) {
  const buffer = device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST });
  const samples = [];
  for (let i = 0; i < 10; i++) {
    const start = performance.now();
    device.queue.writeBuffer(buffer, 0, Uint32Array.of(i));
    await device.queue.onSubmittedWorkDone();
    samples.push(performance.now() - start);
  }
  buffer.destroy();
  return spread(samples).median;
}

/** `{pyodideDir, wheel, root}`, as for the harness of the pages. Resolves to what waiting takes. */
async function start({ pyodideDir, wheel, root }) {
  const { loadPyodide } = await import(`${pyodideDir}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: root + pyodideDir });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const bridge = await connect(pyodide, { wheel: new URL(wheel, location).href });
  const device = await requestDevice();
  const pool = poolOf(useDevice(device)); // a private part, for what is cold
  context = { pyodide, bridge, device, pool, library };
  waitMs = await measureWait(device);
  return waitMs;
}

/** `{ways, done}` of all ways together. */
function together(...parts) {
  return {
    ways: parts.flatMap(({ ways }) => ways),
    done: () => parts.map(({ done }) => done()),
  };
}

/** `least`: ours, today's and the floor alone, which need half the memory. */
function waysFor(path, layout, bytes, least) {
  switch (least ? `least ${path}` : path) {
    case "least download":
      return downloadWays(context, bytes);
    case "least upload":
      return uploadWays(context, bytes, layout);
    case "dispatch":
      return callWays(context, bytes, "contiguous");
    case "handover":
      return handoverWays(context, bytes, layout);
    case "kernels":
      return together(kernelWays(context, bytes), copyWay(context, bytes));
    case "download":
      return together(downloadWays(context, bytes), copyWay(context, bytes));
    case "upload":
      return together(uploadWays(context, bytes, layout), copyWay(context, bytes));
  }
  throw new TypeError(`no path ${path}`);
}

/** What the GPU says to the work in between; memory that runs out is told here alone. */
async function watched(device, work) {
  const filters = ["out-of-memory", "internal", "validation"];
  for (const filter of filters) device.pushErrorScope(filter);
  const done = await work().then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  const told = await Promise.all(filters.map(() => device.popErrorScope()));
  const error = told.reverse().find((each) => each); // what was pushed first: the cause
  if (error) throw new Error(`${error.constructor.name}: ${error.message}`);
  if ("error" in done) throw done.error;
  return done.value;
}

/** `{rows, left_out, wrong}`: ways that fail are left out, and told; those that lie are wrong. */
async function measure({ path, layout, bytes, rounds, quick, least }) {
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
    const { ways, done } = waysFor(path, layout, bytes, least);
    // Waiting is not what is measured: where it is long, so are the batches.
    const maxBatch = Math.max(1, Math.min(MOST, MOST_BYTES / bytes));
    const larger = (way) => (way.settle && !quick ? { ...way, maxBatch } : way);
    const sampleMs = quick ? undefined : Math.max(5, SETTLES * waitMs);
    try {
      return await compare(ways.map(larger), { rounds, sampleMs, failed });
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
