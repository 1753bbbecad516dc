// Random sequences of operations on two copies of the library, which share devices and buffers, and on a
// model of them. A sequence that comes to something else is made as short as possible, and told.
import * as ndarray from "/js/adapters/ndarray.js";
import { OPERATIONS } from "./operations.mjs";
import { Random } from "./random.mjs";
import { playAll } from "./shrink.mjs";
import * as watch from "./watch.mjs";
import { Found, World } from "./world.mjs";

const BY_NAME = new Map([...OPERATIONS.keys()].map((operation) => [operation.name, operation]));
const NAMES = [...OPERATIONS].flatMap(([{ name }, times]) => Array(times).fill(name));
/** Steps between two looks at all elements. */
const LOOK = 6;

/** Steps are names and seeds of their own, so that others can be left out. */
function sequence(seed, number) {
  const r = new Random(seed * 7919 + number);
  return Array.from({ length: 3 + r.below(45) }, () => [r.of(NAMES), r.below(2 ** 30)]);
}

/** A worker that sends back what it gets. */
function echo() {
  const worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
    waiting.get(data.id)(data);
    waiting.delete(data.id);
  };
  return (message) => {
    const id = ++last;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    worker.postMessage({ id, message }, [message.buffer]);
    return watch.settled(answer, "the worker");
  };
}

/** The copy of npm beside that of the wheel; only the first has the bridge to Python. */
async function secondCopy() {
  const library = await import("/js-source/dist/index.js");
  const exchange = await import("/js-source/dist/exchange/index.js");
  return { library, exchange };
}

/** What is needed of Python and of other threads, once. */
export async function prepare(context) {
  if (context.python) return;
  const { pyodide } = context;
  const source = await (await fetch(new URL("library.py", import.meta.url))).text();
  pyodide.runPython(source);
  const run = pyodide.globals.get("run");
  const run_later = pyodide.globals.get("run_later");
  Object.assign(context, { ndarray, labels: 0, python: { run, run_later }, send: echo() });
  const { library, exchange } = context;
  context.copies = [{ library, exchange }, await secondCopy()];
  context.idle = [];
}

/** Two devices that work, from the last sequence where they still do. */
async function devicesOf(world) {
  const { idle } = world.context;
  world.devices = idle.splice(0);
  while (world.devices.length < 2) await world.addDevice();
}

/** What went wrong with a sequence; null: nothing. */
async function play(context, steps) {
  const world = new World(context, context.python, context.send);
  let step = "the beginning";
  try {
    await devicesOf(world);
    watch.heard();
    context.tensorsBefore = context.library.liveTensors();
    context.liveBefore = context.python.run("live", "{}");
    for (const [i, [name, seed]] of steps.entries()) {
      step = `step ${i}, ${name}`;
      world.copy = context.copies[seed % 3 === 0 ? 1 : 0];
      await watch.settled(BY_NAME.get(name)(world, new Random(seed)), step);
      if (i % LOOK === LOOK - 1) await world.check();
    }
    step = "the last look";
    await world.check();
    step = "the end";
    await world.end(new Random(steps.length));
    context.idle = world.devices.filter(({ lost }) => !lost);
    return null;
  } catch (error) {
    await tidy(world);
    const place = error instanceof Found ? "" : `\n${error.stack}`;
    return `${step}: ${error.message}${place}`;
  }
}

/** After a problem nothing is to be relied on. */
async function tidy(world) {
  await Promise.race([
    Promise.allSettled(world.reads.map(({ settled }) => settled)),
    new Promise((done) => watch.raw.setTimeout(done, 2000)),
  ]);
  for (const entry of [...world.entries]) {
    try {
      world.let(entry, 0);
    } catch {} // one that is broken is left
  }
  for (const { gpu } of world.devices) gpu.destroy();
  watch.elapse(10_000);
  watch.elapse(10_000);
  await watch.turn();
  watch.heard();
}

/** Random sequences, as playAll() in shrink.mjs plays them. */
export async function run(context, { seed, ...options }) {
  await prepare(context);
  const sequences = (number) => sequence(seed, number);
  return playAll((steps) => play(context, steps), sequences, { ...options, patience: 90 });
}
