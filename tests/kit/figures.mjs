// The measurements: step by step, each in both implementations, kept in bench.json as they come.
import { memoryAvailable } from "./adapters.mjs";
import { LARGEST } from "./options.mjs";
import { Runtime } from "./runtime.mjs";

const [KB, MB] = [2 ** 10, 2 ** 20];
const SIZES = [64, 4 * KB, 64 * KB, MB, 16 * MB, 64 * MB, 256 * MB, LARGEST];
const QUICK = [64, MB];
const SECONDS = 600; // for one step
// NumPy's array, its copies to compare with, and what drivers keep: 17 GB for 1 GiB were seen on lavapipe, where GPU
// memory is the machine's.
const MEMORY = 18;
const FEWER = new Set(["upload", "download"]); // have a lesser set of ways

/** `[path, layout, smallest, largest]` in bytes: below, calls alone would be measured. */
const PATHS = [
  ["dispatch", "contiguous", 64, 64],
  ["handover", "protocol", MB, MB],
  ["handover", "Python", MB, MB],
  ["kernels", "contiguous", MB, 256 * MB],
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
    const within = asked.filter((bytes) => bytes >= least && bytes <= most);
    return within.map((bytes) => ({ path, layout, bytes }));
  });
  return steps.sort((a, b) => a.bytes - b.bytes);
}

function rounds(bytes, quick) {
  if (quick) return 5;
  return bytes >= 64 * MB ? 7 : 15;
}

/** What a runtime answers about a step; it is started where it is not running. */
async function ask(runtime, start, options, kept) {
  if (!runtime.running) {
    const told = kept.implementations[runtime.implementation];
    told.wait_ms = await runtime.call(SECONDS, "start", start);
  }
  return runtime.call(SECONDS, "measure", options);
}

/** Measures a step, large ones with fewer ways where all need too much; rows and what had to be left
 * out go to `kept`. */
async function measure(runtime, start, step, quick, kept) {
  const told = { webgpu: runtime.implementation, ...step };
  const into = (list, entries) => list.push(...entries.map((each) => ({ ...told, ...each })));
  const needed = MEMORY * step.bytes;
  const free = memoryAvailable();
  if (needed > free) {
    const reason = `needs about ${needed} bytes of memory, and ${free} are free`;
    into(kept.left_out, [{ reason }]);
    return;
  }
  const options = { ...step, rounds: rounds(step.bytes, quick), quick };
  for (const least of FEWER.has(step.path) ? [false, true] : [false]) {
    try {
      const { rows, left_out, wrong } = await ask(runtime, start, { ...options, least }, kept);
      into(kept.rows, rows);
      into(kept.left_out, left_out);
      into(kept.wrong, wrong);
      if (rows.length > 0) return;
    } catch (error) {
      into(kept.left_out, [{ reason: error.message }]);
    }
    runtime.stop(); // what it still holds is given back, and its device may be lost
  }
}

/** Resolves to the state that it ended in; `keep` writes bench.json. */
export async function runBench(implementations, { url, start, options, kept, keep, say }) {
  const until = performance.now() + options.minutes * 60_000;
  const runtimes = implementations.map((name) => new Runtime(name, url, "tests/kit/measuring.mjs"));
  try {
    for (const step of plan(options)) {
      for (const runtime of runtimes) {
        if (performance.now() > until) return "out of time";
        say(`  ${step.path}, ${step.layout}, ${step.bytes} bytes: ${runtime.implementation}`);
        await measure(runtime, start, step, options.quick, kept);
        keep();
      }
    }
  } finally {
    for (const runtime of runtimes) runtime.stop();
  }
  return "whole";
}
