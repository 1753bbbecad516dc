// The chain page: reads handwritten digits with four libraries on one device, on the page and in
// a worker, and shows what was copied on the way.
import { photograph, start } from "./chain_run.mjs"; // first: it counts copies
import { describeReading, drawDigits, wrongOnes } from "./digits.mjs";
import { liveTensors, Tensor } from "./js/index.js";
import { offerOwnDigit } from "./pad.mjs";
import { $, heldOf, offer, say, showHop, Tasks } from "./page.mjs";
import { formatBytes, formatTime, Steps, showChecks } from "./steps.mjs";

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
  const ok = checks.every(({ held }) => held);
  say(ok ? "Done, on the page and in a worker." : "Done, but a check failed.");
  return {
    ok,
    max_abs_error: Math.max(here.error, there.error),
    versions: { ...here.versions, browser: navigator.userAgent },
    steps: here.steps,
    map_async: here.mapAsync,
    worker: { steps: there.steps, map_async: there.mapAsync, right: there.right },
    model: { ...facts, right_in_photograph: here.right },
    checks: heldOf(checks),
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
    showHop(hop, sum("copies"), copied ? formatBytes(copied) : formatTime(sum("ms")));
  });
  drawDigits($("photo"), picture, facts, labels, scores);
  showWrong(labels, facts);
  $("answer").textContent =
    `${describeReading(labels, right, facts, facts.accuracy)} ` +
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

const tasks = new Tasks("chain", {
  controls: ["read-own"],
  forget: () => {
    reading = undefined;
  },
});
const photo = photograph();

offerOwnDigit(tasks, photo, {
  libraries: "the libraries",
  isLoaded: () => reading !== undefined,
  async read(picture) {
    reading ??= start(say);
    const read = await reading;
    const { labels, scores } = await read(picture, picture.sheet);
    return { label: labels[0], score: scores[0] };
  },
});
offer(
  () => tasks.run(runOnce),
  async () => {
    const { picture, facts } = await photo;
    drawDigits($("photo"), picture, facts);
  },
);
