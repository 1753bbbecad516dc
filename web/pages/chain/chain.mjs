// The chain page: reads handwritten digits with four libraries on one device, on the page and in
// a worker, and shows what was copied on the way.
import { photograph, start } from "./chain_run.mjs"; // first: it counts copies
import { drawDigits, wrongOnes } from "./digits.mjs";
import { liveTensors, Tensor } from "./js/index.js";
import { offerSamples, Pad } from "./pad.mjs";
import { formatBytes, formatCopies, formatTime, Steps, showChecks } from "./steps.mjs";
import { opensByItself, publish, showMissing, webgpuProblem } from "./support.mjs";

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
  const { picture, facts } = await photo;
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
  showChecks($("checks-box"), checks);
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
  drawDigits($("photo"), picture, facts, labels, scores);
  showWrong(labels, facts);
  $("answer").textContent =
    `${Math.round(right * labels.length)} of ${labels.length} digits are read rightly; of all ` +
    `${facts.tested_on} that the network had not seen it knows ${(100 * facts.accuracy).toFixed(1)} %. ` +
    `GPU and NumPy differ by at most ${error.toExponential(1)}.`;
}

/** The digits that were misread, in words. */
function showWrong(labels, facts) {
  const wrong = wrongOnes(labels, facts);
  const box = $("wrong-ones");
  box.hidden = false;
  box.querySelector("summary").textContent =
    wrong.length === 0 ? "None was misread" : `${wrong.length} misread`;
  box.querySelector("ul").replaceChildren(
    ...wrong.map(({ row, column, read, truth }) =>
      Object.assign(document.createElement("li"), {
        textContent: `Row ${row}, column ${column}: a ${truth}, read as ${read}`,
      }),
    ),
  );
}

// --- a digit of the reader's ---

const pad = new Pad($("pad"), () => reading && readOwn());

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
    if (!reading) $("own").textContent = "Loading Python and the libraries…";
    reading ??= start(say);
    const read = await reading;
    const { labels, scores } = await read(picture, picture.sheet);
    $("own").textContent = `A ${labels[0]}, with ${(100 * scores[0]).toFixed(0)} %.`;
    $("own").dataset.read = labels[0];
    say("Ready.");
  } catch (error) {
    reading = undefined;
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

/** Whether something runs; that Run cannot be pressed may have other reasons. */
const isBusy = () => !$("progress").hidden;

function busy(now) {
  $("run").disabled = now;
  $("read-own").disabled = now;
  $("progress").hidden = !now;
}

function showProblem(error) {
  say("It did not work.");
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

async function run() {
  if (isBusy()) return;
  busy(true);
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
  busy(false);
}

$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
const photo = photograph();
photo.then((there) => offerSamples($("samples"), pad, there, readOwn)).catch(showProblem);
if (opensByItself()) run();
else {
  photo
    .then(({ picture, facts }) => drawDigits($("photo"), picture, facts))
    .then(() => showMissing($("problem"), $("run")))
    .catch(showProblem);
}
