// The page "by hand": two programs for one task, by turns, on the same array.

import { boot, runScript } from "./boot.mjs";
import * as counters from "./counters.mjs"; // first, to see what the library copies
import { highlight } from "./highlight.mjs";
import { $, fillTable, median, offer, say, Tasks, textOf } from "./page.mjs";
import { formatBytes, formatTime } from "./steps.mjs";

const ROUNDS = 9;
const WAYS = [
  { id: "hand", name: "by hand", file: "beside_hand.py" },
  { id: "dlpack", name: "with dlpack-web", file: "beside_dlpack.py" },
];

const sources = Promise.all(WAYS.map(({ file }) => textOf(file)));

/** Lines that are neither empty nor the docstring on top. */
function linesOf(source) {
  return source.split("\n").filter((line, i) => i > 0 && line.trim() !== "").length;
}

let python;

async function start() {
  const { pyodide } = await boot(say);
  const programs = [];
  for (const [i, source] of (await sources).entries()) {
    const names = runScript(pyodide, WAYS[i].file, source);
    programs.push({ run: names.get("run"), made: await names.get("start")() });
  }
  return { pyodide, programs };
}

async function runOnce() {
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
  fillTable(
    $("ways"),
    ways.map(({ name, lines, copies, copied_bytes, ms }) => [
      name,
      lines,
      copies,
      formatBytes(copied_bytes),
      formatTime(ms),
    ]),
  );
  $("verdict").textContent = same
    ? "The results are the same, to the last bit."
    : "The results differ.";
  $("verdict").dataset.ok = same;
}

async function run() {
  const { ways, same } = await runOnce();
  show({ ways, same });
  say("Done.");
  const [hand, ours] = ways;
  const ok = same && ours.lines < hand.lines && ours.copies < hand.copies;
  return { ok, steps: ways, same };
}

const tasks = new Tasks("beside");
offer(() => tasks.run(run));
for (const [i, source] of (await sources).entries()) highlight($(WAYS[i].id), source);
