// The page "by hand": two programs for one task, by turns, on the same array.

import { boot } from "./boot.mjs";
import * as counters from "./counters.mjs"; // first, so that it sees what the library copies
import { highlight } from "./highlight.mjs";
import { formatBytes, formatTime } from "./steps.mjs";
import { opensByItself, publish, showMissing, webgpuProblem } from "./support.mjs";

const ROUNDS = 9;
const WAYS = [
  { id: "hand", name: "by hand", file: "beside_hand.py" },
  { id: "dlpack", name: "with dlpack-web", file: "beside_dlpack.py" },
];

const $ = (id) => document.getElementById(id);
const say = (text) => {
  $("status").textContent = text;
};
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const sources = Promise.all(
  WAYS.map(({ file }) => fetch(file).then((response) => response.text())),
);

/** Lines that are neither empty nor the docstring on top. */
function linesOf(source) {
  return source.split("\n").filter((line, i) => i > 0 && line.trim() !== "").length;
}

let python;

async function start() {
  const { pyodide } = await boot(say);
  const programs = [];
  for (const [i, source] of (await sources).entries()) {
    const names = pyodide.toPy({ __name__: WAYS[i].id });
    pyodide.runPython(source, { globals: names, filename: WAYS[i].file });
    programs.push({ run: names.get("run"), made: await names.get("start")() });
  }
  return { pyodide, programs };
}

async function runOnce() {
  const problem = await webgpuProblem();
  if (problem) throw new Error(problem);
  python ??= await start();
  const { pyodide, programs } = python;
  say("Running both, by turns…");
  const size = Number($("size").value);
  pyodide.globals.set("size", size);
  const array = pyodide.runPython(
    "import numpy as np; np.random.default_rng(1).random(size, dtype=np.float32)",
  );
  const bytes = 4 * size;
  const rows = WAYS.map(() => ({ times: [], copies: 0, copied_bytes: 0 }));
  const results = [];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [i, { run, made }] of programs.entries()) {
      counters.start(bytes);
      const at = performance.now();
      let result;
      let counts;
      try {
        result = await run(made, array);
      } finally {
        counts = counters.stop();
      }
      if (round > 0) rows[i].times.push(performance.now() - at); // the first compiles
      Object.assign(rows[i], counts);
      results[i]?.destroy();
      results[i] = result;
    }
  }
  pyodide.globals.set("pair", pyodide.toPy(results));
  const same = pyodide.runPython(
    "a, b = pair; same = bool((a == b).all()) and a.dtype == b.dtype; del a, b, pair; same",
  );
  for (const each of [...results, array]) each.destroy();
  const texts = await sources;
  return {
    same,
    bytes,
    ways: rows.map(({ times, copies, copied_bytes }, i) => ({
      name: WAYS[i].name,
      lines: linesOf(texts[i]),
      bytes,
      copies,
      copied_bytes,
      ms: median(times),
    })),
  };
}

function show({ ways, same }) {
  $("ways").replaceChildren(
    ...ways.map(({ name, lines, copies, copied_bytes, ms }) => {
      const row = document.createElement("tr");
      const cells = [name, lines, copies, formatBytes(copied_bytes), formatTime(ms)];
      for (const text of cells) row.insertCell().textContent = text;
      return row;
    }),
  );
  $("verdict").textContent = same
    ? "The results are the same, to the last bit."
    : "The results differ.";
  $("verdict").dataset.ok = same;
}

async function run() {
  $("run").disabled = true;
  $("progress").hidden = false;
  $("problem").hidden = true;
  try {
    const { ways, same } = await runOnce();
    show({ ways, same });
    say("Done.");
    const [hand, ours] = ways;
    const ok = same && ours.lines < hand.lines && ours.copies < hand.copies;
    publish({ page: "beside", ok, steps: ways, same });
  } catch (error) {
    say("It did not work.");
    $("problem").textContent = error.message;
    $("problem").hidden = false;
    publish({ page: "beside", ok: false, error: error.message });
  }
  $("run").disabled = false;
  $("progress").hidden = true;
}

$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
for (const [i, source] of (await sources).entries()) highlight($(WAYS[i].id), source);
if (opensByItself()) run();
else showMissing($("problem"), $("run"));
