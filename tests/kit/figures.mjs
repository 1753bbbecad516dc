// The measurements: step by step, each in both implementations, kept in bench.json as they come.
import { memoryAvailable } from "./adapters.mjs";
import { LARGEST } from "./options.mjs";
import { Runtime } from "./runtime.mjs";

const [KB, MB] = [2 ** 10, 2 ** 20];
const SIZES = [64, 4 * KB, 64 * KB, MB, 16 * MB, 64 * MB, 256 * MB, LARGEST];
const QUICK = [64, MB];
const SECONDS = 600; // for one step
// NumPy's array, its copies to compare with, and what drivers keep; all of it where GPUs have no memory of their own.
const MEMORY = 12;

/** `[path, layout, smallest, largest]` in bytes: below, calls alone would be measured. */
const PATHS = [
  ["dispatch", "contiguous", 64, 64],
  ["handover", "protocol", 4 * MB, 4 * MB],
  ["handover", "Python", 4 * MB, 4 * MB],
  ["upload", "contiguous", 64, LARGEST],
  ["download", "contiguous", 64, LARGEST],
  ["upload", "strided", MB, 256 * MB], // of twice as much, which Python has beside what it packs
  ["upload", "transposed", MB, 256 * MB],
  ["upload", "f64", MB, 256 * MB],
];

/** The steps, the small ones first: a run that is cut short has something of every path. */
export function plan({ quick, sizes }) {
  const asked = sizes ?? (quick ? QUICK : SIZES);
  const steps = PATHS.flatMap(([path, layout, least, most]) => {
    const within = least === most ? [least] : asked.filter((n) => n >= least && n <= most);
    return within.map((bytes) => ({ path, layout, bytes }));
  });
  return steps.sort((a, b) => a.bytes - b.bytes);
}

function rounds(bytes, quick) {
  if (quick) return 5;
  return bytes >= 256 * MB ? 7 : 15;
}

/** Measures a step; its rows and what had to be left out go to `kept`. Whether results were right. */
async function measure(runtime, start, step, quick, kept) {
  const told = { webgpu: runtime.implementation, ...step };
  const needed = MEMORY * step.bytes;
  const free = memoryAvailable();
  if (needed > free) {
    const reason = `needs about ${needed} bytes of memory, and ${free} are free`;
    kept.left_out.push({ ...told, reason });
    return true;
  }
  try {
    if (!runtime.running) {
      kept.implementations[runtime.implementation].wait_ms = await runtime.call(
        SECONDS,
        "start",
        start,
      );
    }
    const options = { ...step, rounds: rounds(step.bytes, quick), quick };
    const { rows, left_out, wrong } = await runtime.call(SECONDS, "measure", options);
    kept.rows.push(...rows.map((row) => ({ ...told, ...row })));
    kept.left_out.push(...left_out.map((each) => ({ ...told, ...each })));
    kept.wrong.push(...wrong.map((each) => ({ ...told, ...each })));
    if (rows.length === 0) runtime.stop(); // its device may be lost
    return wrong.length === 0;
  } catch (error) {
    runtime.stop(); // what it still holds is given back
    kept.left_out.push({ ...told, reason: error.message });
    return true;
  }
}

/** Resolves to `{right, state}`; `keep` writes bench.json. */
export async function runBench(implementations, { url, start, options, kept, keep, say }) {
  const until = performance.now() + options.minutes * 60_000;
  const runtimes = implementations.map((name) => new Runtime(name, url, "tests/kit/measuring.mjs"));
  let right = true;
  try {
    for (const step of plan(options)) {
      for (const runtime of runtimes) {
        if (performance.now() > until) return { right, state: "out of time" };
        say(`  ${step.path}, ${step.layout}, ${step.bytes} bytes: ${runtime.implementation}`);
        right = (await measure(runtime, start, step, options.quick, kept)) && right;
        keep();
      }
    }
  } finally {
    for (const runtime of runtimes) runtime.stop();
  }
  return { right, state: "whole" };
}
