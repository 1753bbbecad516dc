// The demo page: runs demo_page.py on a photograph and shows what it moved.
import "./counters.mjs"; // first, to see what the library copies
import { boot, runScript, versionsOf } from "./boot.mjs";
import { highlight } from "./highlight.mjs";
import { $, heldOf, isBusy, offer, say, showHop, showProblem, Tasks, textOf } from "./page.mjs";
import { decode, draw } from "./picture.mjs";
import { formatBytes, formatCopies, Steps, showChecks } from "./steps.mjs";

// What the page is there to show: copies on our side, step by step.
const PROMISED = {
  "NumPy to JS view": 0,
  "JS view after memory growth": 0,
  "upload image": 1,
  "blur and Sobel kernels": 0,
  "readback blurred image": 1,
  "readback edges (out=)": 1,
};

const source = textOf("demo_page.py");
let python = null; // Pyodide and the script in it, once started
let steps = new Steps();
let checks = [];

/** What the script knows as `page`. */
const pageModule = {
  begin: (name, bytes) => steps.begin(name, bytes),
  end: () => steps.end(),
  check: (name, held) => checks.push({ name, held }),
  peek: (tensor, index) => tensor.data[index],
  poke: (tensor, index, value) => {
    tensor.data[index] = value;
  },
  draw: (name, tensor) => draw($(name), tensor),
};

async function start() {
  const { pyodide } = await boot(say);
  pyodide.registerJsModule("page", pageModule);
  const script = runScript(pyodide, "demo_page.py", await source);
  const device = await script.get("start")();
  const run = script.get("run");
  let first = true;
  return {
    run(...args) {
      const grow = first;
      first = false;
      return run(device, ...args, grow);
    },
    versions: versionsOf(pyodide),
  };
}

async function picture() {
  const [chosen] = $("file").files;
  return decode(chosen ?? (await (await fetch("photo.jpg")).blob()));
}

/** Shows the picture before anything has run. */
async function preview() {
  const { pixels, width, height } = await picture();
  $("problem").hidden = true;
  const image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
  Object.assign($("source"), { width, height }).getContext("2d").putImageData(image, 0, 0);
}

async function runOnce() {
  python ??= await start();
  const { pixels, width, height } = await picture();
  say("Running…");
  steps = new Steps();
  checks = [];
  const error = await python.run(pixels, height, width, Number($("sigma").value));
  for (const [name, copies] of Object.entries(PROMISED)) {
    const counted = steps.find(name).copies;
    checks.push({ name: `${formatCopies(copies)}: ${name}`, held: counted === copies });
  }
  const result = {
    ok: checks.every(({ held }) => held),
    max_abs_error: error,
    versions: { ...python.versions, browser: navigator.userAgent },
    steps: steps.rows,
    map_async: steps.mapAsync,
    checks: heldOf(checks),
  };
  show(result);
  return result;
}

function showFlow() {
  for (const hop of $("flow").querySelectorAll(".hop")) {
    const { copies, copied_bytes, ms } = steps.find(hop.dataset.step);
    const time = `${ms.toFixed(ms < 1 ? 2 : 0)} ms`;
    showHop(hop, copies, copied_bytes ? formatBytes(copied_bytes) : time);
  }
}

function show(result) {
  steps.show($("steps"));
  showFlow();
  showChecks($("checks-box"), checks);
  const error = result.max_abs_error.toExponential(1);
  say(result.ok ? `Done. GPU and NumPy differ by at most ${error}.` : "Done, but a check failed.");
}

const tasks = new Tasks("demo");
let wanted = false;

/** Runs; when asked again meanwhile, once more after that, with what is set by then. */
async function run() {
  wanted = true;
  if (isBusy()) return;
  while (wanted) {
    wanted = false;
    await tasks.run(runOnce);
  }
}

$("sigma").addEventListener("input", ({ target }) => {
  $("sigma-value").textContent = target.value;
});
$("sigma").addEventListener("change", () => {
  if (python) run(); // Python is there: answer at once
});
$("file").addEventListener("change", () => preview().catch(showProblem));
offer(run, () => preview().catch(showProblem));
highlight($("code"), await source);
