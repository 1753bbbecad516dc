// Has a worker run node tests, one by one, and starts it anew where one hangs: a worker can be ended
// even while WebAssembly computes. The host (node_page.py) calls `nodes.run`.

// A session may wait for shaders to be compiled by a software GPU; Python has to load first.
const LIMIT_MS = 20_000;
const START_MS = 90_000;
// onnxruntime-web keeps what it grew to: a fresh one now and then, so that nothing runs out.
const RUNS = 400;

let worker;
let runs = 0;

/** One message to the worker and its answer; `["hung", …]` when it takes too long. */
function ask(message, limit) {
  return new Promise((resolve) => {
    const done = (outcome) => {
      clearTimeout(timer);
      resolve(outcome);
    };
    const timer = setTimeout(() => done(["hung", `no answer within ${limit / 1000} s`]), limit);
    worker.onmessage = ({ data }) => done(data);
    worker.onerror = (event) => done(["died", event.message]);
    worker.postMessage(message);
  });
}

async function fresh() {
  worker?.terminate();
  runs = 0;
  worker = new Worker(new URL("./node_worker.mjs", import.meta.url), { type: "module" });
  const [state, detail] = await ask("start", START_MS);
  if (state !== "ready") throw new Error(`the worker did not start: ${state} ${detail}`);
}

/** `[[how, detail], …]`, for the tests of these names until `seconds` are over; then fewer. */
async function run(names, provider, seconds) {
  const end = performance.now() + 1000 * seconds;
  const outcomes = [];
  for (const name of names) {
    if (performance.now() > end) break;
    if (!worker || runs === RUNS) await fresh();
    runs += 1;
    const outcome = await ask({ name, provider }, LIMIT_MS);
    outcomes.push(outcome);
    if (outcome[0] === "died" || outcome[0] === "hung") {
      worker.terminate();
      worker = undefined;
    }
  }
  return outcomes;
}

globalThis.nodes = { run };
