// For authors of libraries: figures of `make bench`, the protocol, and the suite on what the reader
// types.
import { $, fillTable, textOf } from "./page.mjs";
import { publish } from "./support.mjs";

// --- the figures --------------------------------------------------------------------------------

/** Ways of the benchmark, by the heading of their table. */
const ROWS = [
  ["handover, ort, 4 MB", "to onnxruntime-web and back, 4 MB on the GPU", "through the CPU"],
  ["handover, tfjs, 4 MB", "to TensorFlow.js and back, 4 MB on the GPU", "through the CPU"],
  ["handover, jax, 4 MB", "to jax-js and back, 4 MB on the GPU", null],
  ["handover, three, 4 MB", "to three.js and back, 4 MB on the GPU", null],
  ["view, 4 MB", "from NumPy to JavaScript, 4 MB", "getBuffer()"],
];

/** `{ "view, 4 MB": [["dlpack-web", "280 ns", "12 ns"], …] }` of the report's tables. */
function tablesOf(report) {
  const tables = {};
  for (const part of report.split("\n### ").slice(1)) {
    const [heading, ...lines] = part.split("\n");
    const rows = lines.filter((line) => line.startsWith("| ")).slice(1);
    tables[heading] = rows.map((line) =>
      line
        .split("|")
        .slice(1, 4)
        .map((cell) => cell.trim()),
    );
  }
  return tables;
}

const shown = ([, median, range]) => `${median} (${range})`;

async function showFigures() {
  const report = await textOf("bench.md");
  const tables = tablesOf(report);
  const adapter = /adapter: ([^,]+)/.exec(report)?.[1];
  if (adapter) $("where").textContent = `two cores with ${adapter}`;
  const rows = ROWS.map(([heading, what, todays]) => {
    const ways = tables[heading] ?? [];
    const today = todays && ways.find(([name]) => name.startsWith(todays));
    const ours = ways.find(([name]) => name === "dlpack-web");
    if (ours === undefined) throw new Error(`bench.md has no ${heading}`);
    return [what, today ? shown(today) : "–", shown(ours)];
  });
  fillTable($("figures"), rows);
  return rows.length;
}

// --- the protocol ---------------------------------------------------------------------------------

$("request").textContent = `tensor[Symbol.for("dlpack.exchange")]({
  versions: [1],     // those you read
  device,            // GPUDevice, null: CPU
  copy: false,       // true: fresh memory
  writes: true,      // you will write
  needs: { offset: 0, padTo: 16, usage },
})

// what may take its time:
await tensor[
  Symbol.for("dlpack.exchange.async")
]({ device: null, signal })`;

$("exchange").textContent = `{
  version: [1, 1],
  device: { type: 15, id: 0, gpu },
  dtype: { code: 2, bits: 32, lanes: 1 },
  shape: [480, 640, 3],
  strides: null,      // row-major
  data,               // GPUBuffer, typed array
                      // or { memory, ptr }
  byteOffset: 0,
  capacity: 3686400,  // with padding
  flags: 0,           // 1 read-only, 2 copied
  flush() {},         // submit your work
  fault() {},         // on a GPU: null, or a promise
                      // of null or the error
  release() {},       // once
}`;

// --- the suite --------------------------------------------------------------------------------------

const PRODUCER = `const EXCHANGE = Symbol.for("dlpack.exchange");
const KINDS = {
  float32: [2, 32, Float32Array],
  int32: [0, 32, Int32Array],
  uint8: [1, 8, Uint8Array],
};
const refuse = (name, text) =>
  Object.assign(new Error(text), { name });

class Matrix {
  constructor(data, dtype, shape) {
    Object.assign(this, { data, dtype, shape });
  }

  [EXCHANGE](request = {}) {
    if (Object(request) !== request) {
      throw new TypeError("no request");
    }
    const { versions = [1], device = null, copy } = request;
    if (!Array.isArray(versions) || typeof device !== "object") {
      throw new TypeError("no request");
    }
    if (!versions.includes(1)) {
      throw refuse("UnsupportedError", "this is version 1");
    }
    if (device) throw refuse("DeviceError", "on the CPU");
    const [code, bits] = KINDS[this.dtype];
    const data = copy ? this.data.slice() : this.data;
    return {
      version: [1, 1],
      device: { type: 1, id: 0, gpu: null },
      dtype: { code, bits, lanes: 1 },
      shape: [...this.shape],
      strides: null,
      data,
      byteOffset: 0,
      capacity: data.byteLength,
      flags: copy ? 2 : 0,
      flush() {},
      release() {},
    };
  }
}

/** What the suite asks for; undefined: cannot make it. */
function make({ dtype, shape, values, device }) {
  if (device || !(dtype in KINDS)) return undefined;
  const data = KINDS[dtype][2].from(values);
  return new Matrix(data, dtype, shape);
}
`;

/** What to replace to break a rule. */
const BREAKS = [
  ["claim a neighbour", "data.byteLength,", "data.byteLength + 64,"],
  ["ignore copy: true", "copy ? this.data.slice() : this.data", "this.data"],
  ["forget the versions", "!versions.includes(1)", "false"],
  ["share the shape", "[...this.shape]", "this.shape"],
  ["clear at release", "release() {}", "release() { data.fill(0); }"],
  ["hang", "const [code", "while (code !== 0);\n    var [code"],
];

/** What each rule says, by its number: the first sentence of the protocol's text. */
let texts = {};

async function loadRules() {
  const lines = (await textOf("EXCHANGE.md")).replaceAll(/\n {2}/g, " ");
  const found = {};
  for (const [, id, text] of lines.matchAll(/^[-|] \*\*([A-Z]\d+)\*\* (.+)$/gm)) {
    const plain = text.replaceAll("\\", "").replaceAll(/[*`]/g, "").replaceAll(" | ", " ");
    found[id] = /^\|? ?(.+?\.(?= [A-Z])|.+)/.exec(plain)[1].replace(/ ?\|$/, "");
  }
  texts = found;
}

const LIMIT_MS = 5_000;
let worker;

/** What the suite says of a text; a run that began before is given up, and undefined. */
function judge(source) {
  worker?.terminate();
  const mine = new Worker("authors_worker.eval.mjs", { type: "module" });
  worker = mine;
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      mine.terminate();
      resolve({ ok: false, rules: [], error: `it did not end within ${LIMIT_MS / 1000} s` });
    }, LIMIT_MS);
    const done = (report) => {
      clearTimeout(timer);
      mine.terminate();
      resolve(report);
    };
    mine.addEventListener("message", ({ data }) => done(data));
    mine.addEventListener("error", ({ message }) => done({ ok: false, rules: [], error: message }));
    mine.postMessage(source);
  });
}

function stateOf({ ok, skipped }) {
  if (skipped) return "skipped";
  return ok ? "kept" : "broken";
}

function show({ ok, rules, error }) {
  const counts = { kept: 0, broken: 0, skipped: 0 };
  for (const rule of rules) counts[stateOf(rule)]++;
  $("verdict").textContent =
    error ?? `${counts.kept} rules kept, ${counts.broken} broken, ${counts.skipped} not tried`;
  $("verdict").dataset.ok = ok;
  $("verdict").dataset.running = false;
  const order = { broken: 0, kept: 1, skipped: 2 };
  const sorted = [...rules].sort((a, b) => order[stateOf(a)] - order[stateOf(b)]);
  $("rules").replaceChildren(
    ...sorted.map((rule) => {
      const item = document.createElement("li");
      item.dataset.state = stateOf(rule);
      item.dataset.rule = rule.id;
      const id = document.createElement("b");
      id.textContent = rule.id;
      item.append(id, rule.message ?? texts[rule.id] ?? "");
      return item;
    }),
  );
}

let run = 0;

async function judgeAndShow() {
  const mine = ++run;
  $("verdict").textContent = "Running…";
  $("verdict").dataset.running = true;
  const report = await judge($("producer").value);
  if (mine === run) show(report);
  return report;
}

let pause;
$("producer").value = PRODUCER;
$("producer").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(judgeAndShow, 500);
});
for (const [label, from, to] of [...BREAKS, ["restore it", null, null]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.textContent = label;
  button.addEventListener("click", () => {
    $("producer").value = from === null ? PRODUCER : PRODUCER.replace(from, () => to);
    judgeAndShow();
  });
  $("breaks").append(button);
}

let figures = 0;
let problem = null;
try {
  figures = await showFigures();
  await loadRules();
} catch (error) {
  problem = `${error}`;
  $("figures").rows[0].cells[0].textContent = `The figures could not be loaded: ${error.message}`;
}
const { ok, rules, error } = await judgeAndShow();
publish({ page: "authors", ok: ok && problem === null, figures, rules, problem: problem ?? error });
