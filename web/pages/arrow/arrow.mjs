// The arrow page: columns of an Arrow file become tensors where they lie, go to the GPU by one copy,
// and are counted there by a shader that Python launches.
import "./counters.mjs"; // first, to see what the libraries copy
import { boot, runScript } from "./boot.mjs";
import { highlight } from "./highlight.mjs";
import { drawHistogram } from "./histogram.mjs";
import { fromArrow } from "./js/adapters/arrow.js";
import { liveTensors } from "./js/index.js";
import { $, heldOf, madeBytes, offer, say, showHop, Tasks, textOf } from "./page.mjs";
import { formatBytes, formatCopies, formatTime, Steps, showChecks } from "./steps.mjs";

/** Numbers for the shader are 16 bytes each. */
const LEAST = 64;
const FILE = "measurements/measurements.arrow";

/** By column: what a bin is wide at least, and the bins' range, in its unit. */
const COLUMNS = {
  temperature: { unit: "°C", low: -16, high: 32, width: 1 / 4 },
  wind: { unit: "m/s", low: 0, high: 16, width: 1 / 8 },
};
/** What is copied by our side, whatever the column. */
const PROMISED = {
  "file to columns": 0,
  "column to tensor": 0,
  "column to GPU": 1,
  "WGSL: histogram": 0,
  "which are null, to GPU": 1,
  "counts to NumPy": 1,
};
/** What stands between two stations of the picture. */
const HOPS = [["file to columns"], ["column to tensor"], ["column to GPU"], ["WGSL: histogram"]];

let python;
let file;
let steps;
let checks;
let drawn; // what the canvas shows

const check = (name, held) => checks.push({ name, held });

function download() {
  say("Loading the file…");
  return madeBytes(FILE, "arrow");
}

async function start() {
  const { pyodide } = await boot(say);
  pyodide.registerJsModule("page", {
    begin: (name, bytes) => steps.begin(name, bytes),
    end: () => steps.end(),
    check,
  });
  const script = runScript(pyodide, "arrow_page.py", await source);
  const tools = await script.get("start")();
  const run = script.get("run");
  return (...args) => run(tools, ...args);
}

/** Runs `call` as a step. */
function stepped(name, bytes, call) {
  steps.begin(name, bytes);
  try {
    return call();
  } finally {
    steps.end();
  }
}

async function count(arrow, bytes, histogram, { name, low, high, width }) {
  steps = new Steps(LEAST);
  checks = [];
  const table = stepped("file to columns", bytes.byteLength, () => arrow.tableFromIPC(bytes));
  const { values, valid } = stepped("column to tensor", 4 * table.numRows, () =>
    fromArrow(arrow, table, { column: name, nulls: "mask" }),
  );
  try {
    check("the tensor is over the file’s own bytes", values.data.buffer === bytes.buffer);
    const { nullCount } = table.getChild(name);
    const result = await histogram(values, nullCount > 0 ? valid : undefined, low, high, width);
    const [counts, rows, nulls] = result.toJs();
    result.destroy();
    check("Arrow counts as many nulls", nulls === nullCount);
    return { counts, rows, nulls };
  } finally {
    values.release();
    valid.release();
  }
}

async function runOnce() {
  const before = liveTensors();
  file ??= await download();
  python ??= await start();
  say("Counting…");
  const arrow = await import("./libraries/arrow.mjs");
  const name = $("column").value;
  const { unit, low, high, width } = COLUMNS[name];
  const bins = { name, low, high, width: width * Number($("coarseness").value) };
  if (!drawn) await count(arrow, file, python, bins); // compiles the shader, and is not shown
  const { counts, rows, nulls } = await count(arrow, file, python, bins);
  for (const [each, copies] of Object.entries(PROMISED)) {
    const row = steps.find(each);
    if (!row) continue;
    const whole = copies === 0 || row.copied_bytes === row.bytes;
    check(
      `${formatCopies(copies)}: ${each}`,
      row.copies === copies && row.gpu_copies <= 1 && whole,
    );
  }
  check("no tensor is left", liveTensors() === before);
  drawn = { counts: [...counts].map(Number), ...bins, unit };
  draw();
  show(rows, nulls);
  const ok = checks.every(({ held }) => held);
  say(ok ? "Done." : "Done, but a check failed.");
  return {
    ok,
    column: name,
    rows,
    nulls,
    counted: drawn.counts.reduce((a, b) => a + b, 0),
    bins: drawn.counts.length,
    steps: steps.rows,
    checks: heldOf(checks),
  };
}

function draw() {
  if (drawn) drawHistogram($("histogram"), drawn);
}

function show(rows, nulls) {
  steps.show($("steps"));
  document.querySelectorAll("#flow .hop").forEach((hop, i) => {
    const those = HOPS[i].map((name) => steps.find(name));
    const sum = (key) => those.reduce((total, row) => total + row[key], 0);
    const copied = sum("copied_bytes");
    showHop(hop, sum("copies"), copied ? formatBytes(copied) : formatTime(sum("ms")));
  });
  const { counts, low, width, unit, name } = drawn;
  const most = counts.indexOf(Math.max(...counts));
  const from = low + most * width;
  $("answer").textContent =
    `${rows.toLocaleString("en")} rows of ${name}, of which ${nulls.toLocaleString("en")} are null; ` +
    `most are from ${from} to ${from + width} ${unit}. NumPy counts the same in all ` +
    `${counts.length} bins.`;
  showChecks($("checks-box"), checks);
}

const INPUTS = ["column", "coarseness"];
const tasks = new Tasks("arrow", { controls: INPUTS });
const run = () => tasks.run(runOnce);
const source = textOf("arrow_page.py");

for (const id of INPUTS) {
  $(id).addEventListener("change", () => drawn && run());
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("resize", draw);
offer(run);
highlight($("code"), await source);
