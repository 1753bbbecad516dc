// The page of onnxruntime: one program in Python that reads digits, on the GPU and on the CPU.

import { boot } from "./boot.mjs";
import { photograph } from "./chain_run.mjs"; // counts copies from its begin
import * as counters from "./counters.mjs";
import { drawDigits } from "./digits.mjs";
import { highlight } from "./highlight.mjs";
import { offerSamples, Pad } from "./pad.mjs";
import { formatBytes, formatCopies, formatTime, showChecks } from "./steps.mjs";
import { opensByItself, publish, showMissing, webgpuProblem } from "./support.mjs";

const ROUNDS = 7;
// Of a digit, what the network says of it: smaller copies, such as of uniforms, are not counted.
const LOGITS_BYTES = 40;
const PICTURE_BYTES = 8 * 8 * 4; // of a digit, what the network is given
const TOLERANCE = 1e-3; // of a score: sums of 400 products in another order, and exp()

const $ = (id) => document.getElementById(id);
const say = (text) => {
  $("status").textContent = text;
};
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function bytesOf(path) {
  const response = await fetch(path);
  if (response.ok) return new Uint8Array(await response.arrayBuffer());
  throw new Error(
    `${path} is missing (${response.status}): \`make demo PAGE=onnxruntime\` makes it`,
  );
}

let python;

/** Python with the program's functions. */
async function start() {
  const { pyodide } = await boot(say);
  say("Loading onnxruntime-web…");
  pyodide.FS.writeFile("pictures.onnx", await bytesOf("model/pictures.onnx"));
  pyodide.runPython("from dlpack_web import onnxruntime; onnxruntime.install()");
  const names = pyodide.toPy({ __name__: "onnxruntime_page" });
  pyodide.runPython(await source, { globals: names, filename: "onnxruntime_page.py" });
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
  const problem = await webgpuProblem();
  if (problem) throw new Error(problem);
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
      name: "1 copy on the GPU’s way: the photograph",
      held: way.copies === 1 && way.copied_bytes === way.bytes,
    },
    { name: "1 read back on that way: the answers", held: way.map_async === 1 },
  ];
  return { checks, labels, scores: gpu.scores, right, error, agree };
}

const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

function show({ steps, checks, labels, scores, right, error, agree, picture, facts }) {
  $("ways").replaceChildren(
    ...steps.map(({ name, copies, copied_bytes, map_async, ms }) => {
      const row = document.createElement("tr");
      const cells = [name, copies, formatBytes(copied_bytes), map_async, formatTime(ms)];
      for (const text of cells) row.insertCell().textContent = text;
      return row;
    }),
  );
  showFlow(steps[0]);
  drawDigits($("photo"), picture, facts, labels, scores);
  $("answer").textContent =
    `${Math.round(right * labels.length)} of ${labels.length} digits are read rightly; of all ` +
    `${facts.tested_on} that the network had not seen it knows ` +
    `${(100 * facts.pictures_accuracy).toFixed(1)} %.`;
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
    const [count, text] = hops[i];
    hop.dataset.copies = count;
    hop.replaceChildren(
      Object.assign(document.createElement("b"), { textContent: formatCopies(count) }),
      Object.assign(document.createElement("small"), { textContent: text }),
    );
  });
}

async function run() {
  if (isBusy()) return;
  busy(true);
  $("problem").hidden = true;
  try {
    const result = await runOnce();
    show(result);
    const ok = result.checks.every(({ held }) => held);
    say(ok ? "Done." : "Done, but a check failed.");
    const { steps, checks, right, error } = result;
    publish({
      page: "onnxruntime",
      ok,
      steps,
      right,
      max_abs_error: error,
      map_async: steps[0].map_async,
      checks: Object.fromEntries(checks.map(({ name, held }) => [name, held])),
    });
  } catch (error) {
    showProblem(error);
    publish({ page: "onnxruntime", ok: false, error: error.message });
  }
  busy(false);
}

/** Whether something runs; that Run cannot be pressed may have other reasons. */
const isBusy = () => !$("progress").hidden;

function busy(now) {
  $("run").disabled = now;
  $("read-own").disabled = now;
  $("progress").hidden = !now;
}

function showProblem(error) {
  python = undefined;
  say("It did not work.");
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

// --- a digit of the reader's ---

const pad = new Pad($("pad"), () => python && readOwn());

async function readOwn() {
  if (isBusy()) return;
  const picture = pad.picture();
  if (picture === null) {
    $("own").textContent = "The paper is empty: draw a digit first.";
    return;
  }
  busy(true);
  $("problem").hidden = true;
  try {
    const problem = await webgpuProblem();
    if (problem) throw new Error(problem);
    if (!python) $("own").textContent = "Loading Python and onnxruntime-web…";
    python ??= start();
    const { pyodide, program, made } = await python;
    const array = arrayOf(pyodide, picture);
    const result = await program.on_gpu(made, array).finally(() => array.destroy());
    const { labels, scores } = found(result);
    result.destroy();
    $("own").textContent = `A ${labels[0]}, with ${(100 * scores[0]).toFixed(0)} %.`;
    $("own").dataset.read = labels[0];
    say("Ready.");
  } catch (error) {
    showProblem(error);
  }
  busy(false);
}

$("read-own").addEventListener("click", readOwn);
$("read-own").disabled = false; // nobody heard a click before
$("clear").addEventListener("click", () => {
  pad.clear();
  $("own").textContent = "";
});
$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
const source = fetch("onnxruntime_page.py").then((response) => response.text());
source.then((text) => highlight($("program"), text)).catch(showProblem);
const photo = photograph();
photo.then((there) => offerSamples($("samples"), pad, there, readOwn)).catch(showProblem);
if (opensByItself()) run();
else {
  photo
    .then(({ picture, facts }) => drawDigits($("photo"), picture, facts))
    .then(() => showMissing($("problem"), $("run")))
    .catch(showProblem);
}
