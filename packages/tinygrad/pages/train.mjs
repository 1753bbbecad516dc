// The page of training: a worker trains a network in Python, and the page shows how that goes.
import { drawCurve } from "./curve.mjs";
import { drawDigits } from "./digits.mjs";
import { highlight } from "./highlight.mjs";
import { open } from "./js/open/index.js";
import { offerOwnDigit } from "./pad.mjs";
import { $, heldOf, median, offer, say, showProblem, Tasks, textOf } from "./page.mjs";
import { formatTime } from "./steps.mjs";

// A sheet of the test digits: each has 8 x 8 cells, and paper around.
const COLUMNS = 20;
const CELL = 4;
const MARGIN = 2;
const SIDE = CELL * (8 + 2 * MARGIN);
const MOST = 16; // the most ink of a cell, in the file
const PAPER = [247, 240, 222];
const INK = [20, 32, 90];

let worker;
let trained = false;
let losses = [];
let seconds = [];
let of = 160;

/** Asks the worker; resolves to its answer. */
function ask(what, given = {}) {
  worker ??= new Worker(new URL("./train_worker.mjs", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      if (data.say) say(data.say);
      else if (data.loss !== undefined) showLoss(data);
      else if (data.problem) reject(new Error(data.problem));
      else resolve(data.answer);
    };
    worker.onerror = (event) => reject(new Error(`in the worker: ${event.message}`));
    worker.postMessage({ ask: what, ...given });
  });
}

/** The test digits as a picture, with their labels. */
async function testDigits() {
  const file = await open(new URL("./model/handwriting.npz", import.meta.url));
  const [cells, labels] = await Promise.all(
    ["test_pixels", "test_labels"].map(async (name) => {
      const tensor = await file.get(name);
      const values = tensor.data.slice();
      tensor.release();
      return values;
    }),
  );
  file.close();
  const facts = {
    rows: Math.ceil(labels.length / COLUMNS),
    columns: COLUMNS,
    labels: [...labels],
  };
  return { picture: sheetOf(cells, facts), facts };
}

/** Digits in ink on paper, as RGBA. */
function sheetOf(cells, { rows, columns, labels }) {
  const [width, height] = [columns * SIDE, rows * SIDE];
  const pixels = new Uint8Array(4 * width * height).fill(255);
  for (let i = 0; i < width * height; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    const digit = columns * Math.floor(y / SIDE) + Math.floor(x / SIDE);
    const [column, row] = [x, y].map((at) => Math.floor((at % SIDE) / CELL) - MARGIN);
    const inside = digit < labels.length && Math.min(column, row) >= 0 && Math.max(column, row) < 8;
    const ink = inside ? cells[64 * digit + 8 * row + column] / MOST : 0;
    pixels.set(
      PAPER.map((paper, c) => Math.round(paper + ink * (INK[c] - paper))),
      4 * i,
    );
  }
  return { pixels, width, height };
}

/** The 8 x 8 cells of a picture of one digit, from 0 for its paper to 1 for its ink. */
function cellsOf({ pixels, width }) {
  const across = width / CELL;
  const light = new Float32Array(across * across);
  for (let i = 0; i < width * width; i++) {
    const [x, y] = [i % width, Math.floor(i / width)].map((at) => Math.floor(at / CELL));
    light[across * y + x] += pixels[4 * i];
  }
  const [ink, paper] = [Math.min(...light), Math.max(...light)];
  return Float32Array.from({ length: 64 }, (_, i) => {
    const at = across * (Math.floor(i / 8) + MARGIN) + (i % 8) + MARGIN;
    return (paper - light[at]) / Math.max(paper - ink, 1);
  });
}

function showLoss({ loss, seconds: took, of: steps }) {
  losses.push(loss);
  seconds.push(took);
  of = steps;
  drawCurve($("curve"), losses, of);
  say(`Training: step ${losses.length} of ${of}`);
  $("step").textContent = `Loss ${loss.toFixed(3)} at step ${losses.length}; ${stepTimes()}`;
}

/** What a step took: the first ones generate and compile kernels. */
function stepTimes() {
  const first = `the first step took ${seconds[0].toFixed(1)} s`;
  const later = seconds.slice(2);
  return later.length ? `${first}, later ones ${formatTime(1000 * median(later))}` : first;
}

async function train() {
  trained = false;
  $("export").disabled = true;
  [losses, seconds] = [[], []];
  $("step").textContent = "The first step generates and compiles the kernels.";
  $("stop").disabled = false;
  const { scores, accuracy } = await ask("train").finally(() => {
    $("stop").disabled = true;
  });
  trained = true;
  $("export").disabled = false;
  const { picture, facts } = await digits;
  const labels = scores.map((row) => row.indexOf(Math.max(...row)));
  const best = scores.map((row) => Math.max(...row));
  drawDigits($("photo"), picture, facts, labels, best);
  const right = Math.round(accuracy * labels.length);
  $("answer").textContent =
    `${right} of ${labels.length} test digits are read correctly: ${(100 * accuracy).toFixed(1)} %.`;
  say(losses.length < of ? `Stopped after ${losses.length} steps.` : "Done.");
  return accuracy;
}

async function run() {
  const accuracy = await train();
  const stopped = losses.length < of;
  const mean = (some) => some.reduce((sum, loss) => sum + loss, 0) / some.length;
  const checks = [
    { name: "the loss fell", held: mean(losses.slice(-10)) < losses[0] / 4 },
    { name: "90 % of the test digits are read correctly", held: accuracy > 0.9 },
  ];
  const ok = stopped || checks.every(({ held }) => held);
  if (!ok) say("Done, but a check failed.");
  const ms = { first_step_ms: 1000 * seconds[0], step_ms: 1000 * median(seconds.slice(2)) };
  return { ok, stopped, losses, accuracy, ...ms, checks: stopped ? {} : heldOf(checks) };
}

async function readOwn(picture) {
  if (!trained) await train();
  const scores = await ask("read", { pixels: cellsOf(picture) });
  showScores(scores);
  const score = Math.max(...scores);
  return { label: scores.indexOf(score), score };
}

function showScores(scores) {
  $("scores").hidden = false;
  $("scores").replaceChildren(
    ...[...scores].map((score, digit) => {
      const row = document.createElement("li");
      const meter = Object.assign(document.createElement("meter"), { value: score });
      meter.setAttribute("aria-label", `Score of ${digit}`);
      const text = document.createElement("span");
      text.textContent = `${(100 * score).toFixed(1)} %`;
      row.append(`${digit}`, meter, text);
      row.dataset.score = score;
      return row;
    }),
  );
}

/** Offers the weights as a file to keep. */
async function exportWeights() {
  const bytes = await ask("save");
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  Object.assign(document.createElement("a"), { href: url, download: "digits.safetensors" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  say(`Exported ${bytes.length.toLocaleString("en")} bytes.`);
}

const tasks = new Tasks("train", {
  controls: ["read-own"],
  forget: () => {
    worker?.terminate();
    worker = undefined;
    trained = false;
    $("export").disabled = true;
  },
});
const digits = testDigits();

textOf("train_page.py")
  .then((text) => highlight($("program"), text))
  .catch(showProblem);
$("stop").addEventListener("click", () => worker?.postMessage({ ask: "stop" }));
$("export").addEventListener("click", () => tasks.alone(exportWeights));
addEventListener("resize", () => drawCurve($("curve"), losses, of));
drawCurve($("curve"), losses, of);
offerOwnDigit(tasks, digits, {
  libraries: "tinygrad, and training",
  isLoaded: () => trained,
  read: readOwn,
});
offer(
  () => tasks.run(run),
  async () => {
    const { picture, facts } = await digits;
    drawDigits($("photo"), picture, facts);
  },
);
