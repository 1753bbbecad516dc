// The kernel: Pyodide, NumPy, dlpack-web and IPython in a module worker. Messages are plain
// objects with a `type`. `.eval.` in the name lets blocks use eval (web/serve.py).
const at = (path) => new URL(path, import.meta.url).href;
const MEGABYTES = 30; // all that is loaded, about
const STEPS = ["Python", "NumPy and IPython", "dlpack-web", "the shell"];
const FILES = [
  "./shell.py",
  ...["photo.jpg", "digits.png", "pictures.onnx", "handwriting.npz"].map(
    (name) => `../../../examples/${name}`,
  ),
];

// IPython and what it needs, which web/lite/build.py packs.
const SHELL = "/lib/shell.zip";

const QUIET = { messageCallback() {} };

let pyodide;
let python; // shell.py
let stopLoading; // the packages of the block that begins
// Shared with the page; element 0 is the signal, 2 for SIGINT; 1 is the last `posted` that it showed.
let interruptions;
const AHEAD = 1 << 18; // characters that the page may have to show yet
let posted = 0; // modulo 2 ** 32
let step = 0;
let bytes = 0;

function say(next = step) {
  step = next;
  const megabytes = bytes / 1e6;
  const part = Math.max(step / 50, Math.min(megabytes / MEGABYTES, 0.95));
  postMessage({
    type: "progress",
    part,
    text: `Loading ${STEPS[step]}… ${megabytes.toFixed(1)} MB so far`,
  });
}

const arrivals = new PerformanceObserver((list) => {
  for (const { encodedBodySize } of list.getEntries()) bytes += encodedBodySize;
  say();
});

// A request that the policy refuses looks like one that failed: this tells Python which it was.
addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
  if (effectiveDirective !== "connect-src" || !URL.canParse(blockedURI)) return;
  python?.refused.append(new URL(blockedURI).origin);
});

async function start({ signals }) {
  arrivals.observe({ type: "resource", buffered: true });
  say(0);
  const files = Promise.all(FILES.map(async (path) => (await fetch(at(path))).arrayBuffer()));
  const shell = fetch(at("../../../packages/shell.zip")).then((response) => response.arrayBuffer());
  const ours = import("../../../js/index.js");
  const { startPyodide } = await import("../../../start.mjs");
  pyodide = await startPyodide(at("../../../packages/"));
  if (signals) {
    interruptions = signals;
    pyodide.setInterruptBuffer(signals);
  }
  say(1);
  pyodide.FS.writeFile(SHELL, new Uint8Array(await shell));
  pyodide.runPython(`import sys; sys.path.append("${SHELL}")`);
  for (const name of ["ipython", "matplotlib-inline"]) pyodide.loadedPackages[name] = SHELL;
  await pyodide.loadPackage("numpy", QUIET);
  say(2);
  let problem;
  try {
    const { file } = await (await fetch(at("../../../wheel/wheel.json"))).json();
    const { connect } = await ours;
    await connect(pyodide, { wheel: at(`../../../packages/${file}`) });
  } catch (error) {
    problem = `dlpack-web cannot be loaded: ${error.message}`;
  }
  say(3);
  for (const [i, bytes] of (await files).entries()) {
    pyodide.FS.writeFile(FILES[i].split("/").at(-1), new Uint8Array(bytes));
  }
  python = pyodide.pyimport("shell");
  python.post = post;
  python.is_ahead = isAhead;
  python.send_picture = (number, bitmap) =>
    postMessage({ type: "picture", number, bitmap }, [bitmap]);
  arrivals.disconnect();
  postMessage({ type: "ready", problem });
}

async function execute({ code }) {
  if (interruptions) interruptions[0] = 0;
  Object.assign(python, { begins: true, stopped: false });
  const stopped = new Promise((resolve) => {
    stopLoading = resolve;
  });
  const messageCallback = (text) => postMessage({ type: "note", text });
  const imports = python.imports(code);
  await Promise.race([pyodide.loadPackagesFromImports(imports, { messageCallback }), stopped]);
  const ok = await python.execute(code);
  postMessage({ type: "done", ok });
}

/** Each message has the sum of the page's work: 1,000 lines, 4 frames or 16 other outputs are too much. */
function post(text) {
  const message = JSON.parse(text);
  let share = message.type === "stream" ? 1000 : 16;
  if (message.data?.["text/html"]) share = 4;
  posted = (posted + text.length + AHEAD / share) | 0;
  postMessage({ ...message, posted });
}

/** Whether the page has much to show yet: then a moment has passed. */
function isAhead() {
  const shown = interruptions ? Atomics.load(interruptions, 1) : posted;
  if (((posted - shown) | 0) < AHEAD) return false;
  Atomics.wait(interruptions, 1, shown, 20);
  return true;
}

/** Running Python sees the signal on its own; this comes when it waits, or has ended. */
function interrupt() {
  if (interruptions) interruptions[0] = 0;
  stopLoading?.();
  if (!python.interrupt() && interruptions) interruptions[0] = 2;
}

async function complete({ id, code, position }) {
  await pyodide.loadPackage("jedi", QUIET); // only now: it takes more than half a second
  const matches = python.complete(code, position);
  const answer = matches.toJs({ dict_converter: Object.fromEntries });
  postMessage({ type: "answer", id, answer });
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
