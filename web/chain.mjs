// The chain page: reads handwritten digits with four libraries on one device, on the page and in
// a worker, and shows what was copied on the way.
import { photograph, start } from "./chain_run.mjs"; // first: it counts copies
import { liveTensors, Tensor } from "./js/index.js";
import { formatBytes, formatCopies, formatTime, Steps } from "./steps.mjs";
import { opensByItself, publish, webgpuProblem } from "./support.mjs";

const $ = (id) => document.getElementById(id);
const say = (text) => {
  $("status").textContent = text;
};

/** What stands between two stations of the picture: the steps in which the tensor changes hands. */
const HOPS = [
  ["NumPy to GPU", "hand to onnxruntime-web"],
  ["take from onnxruntime-web", "hand to TensorFlow.js"],
  ["take from TensorFlow.js", "hand to jax-js"],
  ["take from jax-js"],
  ["GPU to NumPy"],
];

let reading;
const worker = new Worker(new URL("./chain_worker.mjs", import.meta.url), { type: "module" });

/** Runs the chain in the worker. */
function inWorker() {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      if (data.say) say(`In the worker: ${data.say}`);
      else if (data.problem) reject(new Error(`in the worker: ${data.problem}`));
      else resolve(received(data.result));
    };
    worker.onerror = (event) => reject(new Error(`in the worker: ${event.message}`));
    worker.postMessage("read");
  });
}

/** The arrays that came as tensors: their memory was moved, not copied. */
function received(result) {
  const [labels, scores] = [result.labels, result.scores].map((message) => {
    const tensor = Tensor.receive(message);
    const { data } = tensor;
    tensor.release();
    return data;
  });
  return { ...result, labels, scores };
}

async function runOnce() {
  const problem = await webgpuProblem();
  if (problem) throw new Error(problem);
  reading ??= start(say);
  const read = await reading;
  say("Reading the photograph…");
  const { picture, facts } = await photograph();
  const here = await read(picture, facts);
  show(here, picture, facts);
  say("The same in a worker…");
  const there = await inWorker();
  const same = there.labels.every((label, i) => label === here.labels[i]);
  const checks = [
    ...here.checks,
    ...there.checks.map(({ name, held }) => ({ name: `in the worker: ${name}`, held })),
    { name: "the worker reads the same digits", held: same },
    { name: "no tensor is left", held: liveTensors() === 0 },
  ];
  showChecks(checks);
  return {
    page: "chain",
    ok: checks.every(({ held }) => held),
    max_abs_error: Math.max(here.error, there.error),
    versions: { ...here.versions, browser: navigator.userAgent },
    steps: here.steps,
    map_async: here.mapAsync,
    worker: { steps: there.steps, map_async: there.mapAsync, right: there.right },
    model: { ...facts, right_in_photograph: here.right },
    checks: Object.fromEntries(checks.map(({ name, held }) => [name, held])),
  };
}

function show({ steps, labels, scores, right, error }, picture, facts) {
  const all = new Steps();
  all.rows = steps;
  all.show($("steps"));
  document.querySelectorAll("#flow .hop").forEach((hop, i) => {
    const rows = HOPS[i].map((name) => all.find(name));
    const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
    const copied = sum("copied_bytes");
    const parts = [
      ["b", formatCopies(sum("copies"))],
      ["small", copied ? formatBytes(copied) : formatTime(sum("ms"))],
    ];
    hop.dataset.copies = sum("copies");
    hop.replaceChildren(
      ...parts.map(([tag, text]) =>
        Object.assign(document.createElement(tag), { textContent: text }),
      ),
    );
  });
  draw(picture, facts, labels, scores);
  $("answer").textContent =
    `${Math.round(right * labels.length)} of ${labels.length} digits are read rightly; of all ` +
    `${facts.tested_on} that the network had not seen it knows ${(100 * facts.accuracy).toFixed(1)} %. ` +
    `GPU and NumPy differ by at most ${error.toExponential(1)}.`;
}

/** The photograph, and over each digit what was read; the surer, the stronger. */
function draw({ pixels, width, height }, { rows, columns }, labels = [], scores = []) {
  const context = Object.assign($("photo"), { width, height }).getContext("2d");
  context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), 0, 0);
  const [w, h] = [width / columns, height / rows];
  context.font = `700 ${0.36 * h}px system-ui, sans-serif`;
  context.textAlign = "right";
  context.textBaseline = "top";
  labels.forEach((label, i) => {
    const x = ((i % columns) + 1) * w - 2;
    const y = Math.floor(i / columns) * h + 2;
    context.globalAlpha = 0.35 + 0.65 * scores[i];
    context.strokeStyle = "#fff";
    context.lineWidth = 3;
    context.strokeText(label, x, y);
    context.fillStyle = "#b3261e";
    context.fillText(label, x, y);
  });
  context.globalAlpha = 1;
}

function showChecks(checks) {
  $("checks").replaceChildren(
    ...checks.map(({ name, held }) =>
      Object.assign(document.createElement("li"), {
        className: held ? "held" : "broken",
        textContent: name,
      }),
    ),
  );
}

function showProblem(error) {
  say("It did not work.");
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

async function run() {
  $("run").disabled = true;
  $("progress").hidden = false;
  $("problem").hidden = true;
  try {
    const result = await runOnce();
    say(result.ok ? "Done, on the page and in a worker." : "Done, but a check failed.");
    publish(result);
  } catch (error) {
    reading = undefined;
    showProblem(error);
    publish({ page: "chain", ok: false, error: error.message });
  }
  $("run").disabled = false;
  $("progress").hidden = true;
}

$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
if (opensByItself()) run();
else {
  photograph()
    .then(({ picture, facts }) => draw(picture, facts))
    .catch(showProblem);
}
