// The demo page: runs demo_page.py on a photograph and shows what it moved.
import "./counters.mjs"; // first, so that it sees what the library copies
import { boot } from "./boot.mjs";
import { highlight } from "./highlight.mjs";
import { decode, draw } from "./picture.mjs";
import { formatBytes, formatCopies, Steps, showChecks } from "./steps.mjs";
import { opensByItself, publish, showMissing, webgpuProblem } from "./support.mjs";

const $ = (id) => document.getElementById(id);
const say = (text) => {
  $("status").textContent = text;
};

// What the page is there to show: copies on our side, step by step.
const PROMISED = {
  "NumPy to JS view": 0,
  "JS view after memory growth": 0,
  "upload image": 1,
  "blur and Sobel kernels": 0,
  "readback blurred image": 1,
  "readback edges (out=)": 1,
};

const source = fetch("demo_page.py").then((response) => response.text());
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
  const script = pyodide.toPy({ __name__: "demo_page" });
  pyodide.runPython(await source, { globals: script, filename: "demo_page.py" });
  const versions = JSON.parse(
    pyodide.runPython(`
import json, platform, numpy, dlpack_web
json.dumps({"python": platform.python_version(), "numpy": numpy.__version__,
            "dlpack_web": dlpack_web.__version__})`),
  );
  const device = await script.get("start")();
  const run = script.get("run");
  let first = true;
  return {
    run(...args) {
      const grow = first;
      first = false;
      return run(device, ...args, grow);
    },
    versions: { ...versions, pyodide: pyodide.version },
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
  const problem = await webgpuProblem();
  if (problem) throw new Error(problem);
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
  return {
    page: "demo",
    ok: checks.every(({ held }) => held),
    max_abs_error: error,
    versions: { ...python.versions, browser: navigator.userAgent },
    steps: steps.rows,
    map_async: steps.mapAsync,
    checks: Object.fromEntries(checks.map(({ name, held }) => [name, held])),
  };
}

function showFlow() {
  for (const hop of $("flow").querySelectorAll(".hop")) {
    const { copies, copied_bytes, ms } = steps.find(hop.dataset.step);
    hop.dataset.copies = copies;
    hop.replaceChildren(
      Object.assign(document.createElement("b"), { textContent: formatCopies(copies) }),
      Object.assign(document.createElement("small"), {
        textContent: copied_bytes ? formatBytes(copied_bytes) : `${ms.toFixed(ms < 1 ? 2 : 0)} ms`,
      }),
    );
  }
}

function show(result) {
  steps.show($("steps"));
  showFlow();
  showChecks($("checks-box"), checks);
  const error = result.max_abs_error.toExponential(1);
  say(result.ok ? `Done. GPU and NumPy differ by at most ${error}.` : "Done, but a check failed.");
}

function showProblem(error) {
  say("It did not work.");
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

let wanted = false;

/** Runs; when asked again meanwhile, once more after that, with what is set by then. */
async function run() {
  wanted = true;
  if ($("run").disabled) return;
  $("run").disabled = true;
  $("progress").hidden = false;
  while (wanted) {
    wanted = false;
    $("problem").hidden = true;
    try {
      const result = await runOnce();
      show(result);
      publish(result);
    } catch (error) {
      showProblem(error);
      publish({ page: "demo", ok: false, error: error.message });
    }
  }
  $("run").disabled = false;
  $("progress").hidden = true;
}

$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
$("sigma").addEventListener("input", ({ target }) => {
  $("sigma-value").textContent = target.value;
});
$("sigma").addEventListener("change", () => {
  if (python) run(); // Python is there: answer at once
});
$("file").addEventListener("change", () => preview().catch(showProblem));
highlight($("code"), await source);
if (opensByItself()) run();
else {
  preview()
    .catch(showProblem)
    .then(() => showMissing($("problem"), $("run")));
}
