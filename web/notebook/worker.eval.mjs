// The kernel: Pyodide, NumPy, dlpack-web and IPython in a module worker. Messages are plain
// objects with a `type`. `.eval.` in the name lets cells use eval (web/serve.py).
import { connect } from "../js/index.js";

const at = (path) => new URL(path, import.meta.url).href;
const text = async (url) => (await fetch(url)).text();
const STEPS = ["Python", "NumPy and IPython", "dlpack-web", "the shell", "the examples' files"];

let pyodide;
let python; // shell.py
let interruptions; // shared with the page; element 0 is the signal, 2 for SIGINT

function say(step) {
  postMessage({ type: "progress", step, steps: STEPS.length, text: `Loading ${STEPS[step]}…` });
}

async function start({ signals }) {
  say(0);
  const { loadPyodide } = await import(at("../packages/pyodide.mjs"));
  pyodide = await loadPyodide({ indexURL: at("../packages/") });
  if (signals) {
    interruptions = signals;
    pyodide.setInterruptBuffer(signals);
  }
  say(1);
  const quiet = { messageCallback() {} };
  await pyodide.loadPackage(["numpy", "micropip", "ipython", "jedi", "matplotlib-inline"], quiet);
  say(2);
  let problem;
  try {
    const { file } = await (await fetch(at("../wheel/wheel.json"))).json();
    await connect(pyodide, { wheel: at(`../wheel/${file}`) });
  } catch (error) {
    problem = `dlpack-web is not to be had here: ${error.message}`;
  }
  say(3);
  pyodide.FS.writeFile("/home/pyodide/shell.py", await text(at("./shell.py")));
  python = pyodide.pyimport("shell");
  python.post = (message) => postMessage(JSON.parse(message));
  say(4);
  for (const name of ["photo.jpg", "digits.png"]) {
    const bytes = await (await fetch(at(`../examples/${name}`))).arrayBuffer();
    pyodide.FS.writeFile(name, new Uint8Array(bytes));
  }
  postMessage({ type: "ready", problem });
}

async function execute({ code }) {
  if (interruptions) interruptions[0] = 0;
  const messageCallback = (text) => postMessage({ type: "note", text });
  await pyodide.loadPackagesFromImports(code, { messageCallback });
  const ok = await python.execute(code);
  postMessage({ type: "done", ok });
}

/** Python that runs sees the signal by itself; this comes when it waits, or has ended. */
function interrupt() {
  if (interruptions) interruptions[0] = 0;
  if (!python.interrupt() && interruptions) interruptions[0] = 2;
}

function complete({ id, code, position }) {
  const matches = python.complete(code, position);
  postMessage({
    type: "completions",
    id,
    matches: matches.toJs({ dict_converter: Object.fromEntries }),
  });
  matches.destroy();
}

const handlers = { start, execute, interrupt, complete };

addEventListener("message", async ({ data }) => {
  try {
    await handlers[data.type](data);
  } catch (error) {
    postMessage({ type: "failed", during: data.type, id: data.id, message: error.message });
  }
});
