// The page of onnxruntime: one program in Python that reads digits, on the GPU and on the CPU.

import { boot, runScript } from "./boot.mjs";
import { photograph } from "./chain_run.mjs"; // counts copies from its begin
import * as counters from "./counters.mjs";
import { describeReading, drawDigits } from "./digits.mjs";
import { highlight } from "./highlight.mjs";
import { onnxruntime } from "./packages-js/onnxruntime/pyodide.js";
import { offerOwnDigit } from "./pad.mjs";
import {
  $,
  fillTable,
  heldOf,
  madeBytes,
  median,
  offer,
  say,
  showHop,
  showProblem,
  Tasks,
  textOf,
} from "./page.mjs";
import { formatBytes, formatTime, showChecks } from "./steps.mjs";

const ROUNDS = 7;
// Of a digit, what the network says of it: smaller copies, such as of uniforms, are not counted.
const LOGITS_BYTES = 40;
const PICTURE_BYTES = 8 * 8 * 4; // of a digit, what the network is given
const TOLERANCE = 1e-3; // of a score: sums of 400 products in another order, and exp()

let python;

/** Python with the program's functions. */
async function start() {
  const { pyodide } = await boot(say, [onnxruntime]);
  say("Loading onnxruntime-web…");
  pyodide.FS.writeFile("pictures.onnx", await madeBytes("model/pictures.onnx", "onnxruntime"));
  pyodide.runPython("import dlpack_web_onnxruntime as onnxruntime; onnxruntime.install()");
  const names = runScript(pyodide, "onnxruntime_page.py", await source);
  const program = {};
  for (const name of ["start", "on_gpu", "on_cpu", "cut", "network"]) {
    program[name] = names.get(name);
  }
  const made = await program.start("pictures.onnx");
  return { pyodide, program, made, gpu: made.get("gpu"), cpu: made.get("cpu") };
}

/** RGBA as an array of NumPy's, the picture so many times, one below the other. */
function arrayOf(pyodide, { pixels, width, height }, times = 1) {
  const arrange = pyodide.runPython(
    "import numpy as np\n" +
      "lambda pixels, height, width, times: np.tile(\n" +
      "    np.asarray(pixels.to_py(), np.uint8).reshape(height, width, 4), (times, 1, 1))",
  );
  const array = arrange(pixels, height, width, times);
  arrange.destroy();
  return array;
}

/** Labels and scores that a way came to. */
function found(result) {
  const view = result.getBuffer();
  const values = Float32Array.from(view.data);
  view.release();
  return {
    labels: values.filter((_, i) => i % 2 === 0),
    scores: values.filter((_, i) => i % 2 === 1),
  };
}

/** The ways that are compared, by what they are called. */
function waysOf({ program, made, gpu, cpu }, photo, pictures) {
  return {
    "WebGPU: kernel, network, kernel": () => program.on_gpu(made, photo),
    "CPU: NumPy, network, NumPy": () => program.on_cpu(made, photo),
    "WebGPU: the network alone, of NumPy’s arrays": () => program.network(gpu, pictures),
    "CPU: the network alone, of NumPy’s arrays": () => program.network(cpu, pictures),
  };
}

/** Runs all of them by turns; for each `{ name, result, counts, ms }`. */
async function measure(ways, least) {
  const rows = Object.entries(ways).map(([name, run]) => ({ name, run, times: [] }));
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      for (const row of rows) {
        row.result?.destroy();
        row.result = undefined;
        counters.start(least);
        const at = performance.now();
        try {
          row.result = await row.run();
        } finally {
          row.counts = counters.stop();
        }
        if (round > 0) row.times.push(performance.now() - at); // the first compiles shaders
      }
    }
  } catch (error) {
    for (const { result } of rows) result?.destroy();
    throw error;
  }
  return rows.map(({ name, result, counts, times }) => ({
    name,
    result,
    counts,
    ms: median(times),
  }));
}

async function runOnce() {
  python ??= start();
  const started = await python;
  const { picture, facts } = await photo;
  const times = Number($("times").value);
  const array = arrayOf(started.pyodide, picture, times);
  const pictures = started.program.cut(array);
  say("Running, by turns…");
  let rows;
  try {
    const least = LOGITS_BYTES * facts.labels.length * times;
    rows = await measure(waysOf(started, array, pictures), least);
  } finally {
    array.destroy();
    pictures.destroy();
  }
  const [gpu, cpu] = rows.map(({ result }) => result).map(found);
  for (const { result } of rows) result.destroy();
  const bytes = [picture.pixels.length * times, PICTURE_BYTES * facts.labels.length * times];
  const steps = rows.map(({ name, counts, ms }, i) => ({
    name,
    bytes: bytes[i < 2 ? 0 : 1],
    ...counts,
    ms,
  }));
  return { steps, ...judged(steps[0], gpu, cpu, facts), picture, facts };
}

/** What the two ways read, and whether all that has to hold did. */
function judged(way, gpu, cpu, facts) {
  const error = Math.max(...gpu.scores.map((score, i) => Math.abs(score - cpu.scores[i])));
  const labels = gpu.labels.subarray(0, facts.labels.length);
  const right = labels.filter((label, i) => label === facts.labels[i]).length / labels.length;
  const agree = same(gpu.labels, cpu.labels);
  const checks = [
    { name: "GPU and CPU read the same digits", held: agree },
    { name: `scores differ by less than ${TOLERANCE}`, held: error < TOLERANCE },
    {
      name: "1 copy on the way over the GPU: the photograph",
      held: way.copies === 1 && way.copied_bytes === way.bytes,
    },
    { name: "1 readback on that way: the answers", held: way.map_async === 1 },
  ];
  return { checks, labels, scores: gpu.scores, right, error, agree };
}

const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

function show({ steps, checks, labels, scores, right, error, agree, picture, facts }) {
  fillTable(
    $("ways"),
    steps.map(({ name, copies, copied_bytes, map_async, ms }) => [
      name,
      copies,
      formatBytes(copied_bytes),
      map_async,
      formatTime(ms),
    ]),
  );
  showFlow(steps[0]);
  drawDigits($("photo"), picture, facts, labels, scores);
  $("answer").textContent = describeReading(labels, right, facts, facts.pictures_accuracy);
  $("verdict").textContent =
    `GPU and CPU read ${agree ? "the same" : "different"} digits; their scores differ by at most ` +
    `${error.toExponential(1)}.`;
  showChecks($("checks-box"), checks);
}

/** The GPU's way: what was copied beside the photograph would have been in between. */
function showFlow({ bytes, copies, map_async }) {
  const hops = [
    [1, formatBytes(bytes)],
    [copies - 1, "stays there"],
    [0, "stays there"],
    [map_async, "the answers"],
  ];
  document.querySelectorAll("#flow .hop").forEach((hop, i) => {
    showHop(hop, ...hops[i]);
  });
}

async function run() {
  const result = await runOnce();
  show(result);
  const { steps, checks, right, error } = result;
  const ok = checks.every(({ held }) => held);
  say(ok ? "Done." : "Done, but a check failed.");
  return {
    ok,
    steps,
    right,
    max_abs_error: error,
    map_async: steps[0].map_async,
    checks: heldOf(checks),
  };
}

/** A digit of the reader's, on the GPU. */
async function readOwn(picture) {
  python ??= start();
  const { pyodide, program, made } = await python;
  const array = arrayOf(pyodide, picture);
  const result = await program.on_gpu(made, array).finally(() => array.destroy());
  const { labels, scores } = found(result);
  result.destroy();
  return { label: labels[0], score: scores[0] };
}

const tasks = new Tasks("onnxruntime", {
  controls: ["read-own"],
  forget: () => {
    python = undefined;
  },
});
const photo = photograph();
const source = textOf("onnxruntime_page.py");

source.then((text) => highlight($("program"), text)).catch(showProblem);
offerOwnDigit(tasks, photo, {
  libraries: "onnxruntime-web",
  isLoaded: () => python !== undefined,
  read: readOwn,
});
offer(
  () => tasks.run(run),
  async () => {
    const { picture, facts } = await photo;
    drawDigits($("photo"), picture, facts);
  },
);
