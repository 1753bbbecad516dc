// Random sequences of operations on two copies of the library, which share devices and buffers, and on
// plain lists of bytes. A sequence that comes to something else is made as short as possible, and told.
import { expose_all, OPERATIONS } from "./pool_operations.mjs";
import { Device, Found, World } from "./pool_world.mjs";
import { Random } from "./random.mjs";
import { playAll } from "./shrink.mjs";

const BY_NAME = new Map([...OPERATIONS.keys()].map((operation) => [operation.name, operation]));
const NAMES = [...OPERATIONS].flatMap(([{ name }, times]) => Array(times).fill(name));
const HANGS_MS = 60_000;
/** Timers of a second and more, where watch.mjs holds them back. */
const elapse = async (ms) =>
  globalThis.GPUCanvasContext && (await import("./watch.mjs")).elapse(ms);

/** Steps are names and seeds of their own, so that others can be left out. */
function sequence(seed, number) {
  const r = new Random(seed * 6151 + number);
  return Array.from({ length: 5 + r.below(60) }, () => [r.of(NAMES), r.below(2 ** 30)]);
}

/** A copy of the library; there is one bridge to Python, which the first one that asked has made. */
async function copyAt(path, name, bridge) {
  const library = await import(`${path}index.js`);
  const exchange = await import(`${path}exchange/index.js`);
  const { emptyOnDevice } = await import(`${path}webgpu/buffers/buffers.js`);
  const { useDevice } = await import(`${path}webgpu/device/device.js`);
  const { dtypeNamed } = await import(`${path}core/dtype.js`);
  const { Tensor, webgpu, liveTensors } = library;
  return {
    name,
    Tensor,
    webgpu,
    liveTensors,
    exchange,
    bridge,
    empty: ({ gpu }, dtype, count) => emptyOnDevice(useDevice(gpu), [count], dtypeNamed(dtype)),
  };
}

/** Two copies of the library, as where a page has npm's and Python has the wheel's, and two devices. */
async function prepare(context) {
  if (context.pool) return context.pool;
  const bridge = await context.library.connect(context.pyodide);
  const copies = [
    await copyAt("/js/", "first", bridge),
    await copyAt("/js-source/dist/", "second", bridge),
  ];
  const [first] = copies;
  const open = async () => {
    const device = new Device(await first.webgpu.requestDevice());
    first.webgpu.listenForFaults(device.gpu, () => true); // not of those that nobody reads
    const tensor = first.empty(device, "uint8", 0);
    device.id = `${tensor.device}`;
    tensor.release();
    return device;
  };
  context.pool = { copies, open, devices: [await open(), await open()], labels: 0 };
  return context.pool;
}

async function inTime(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setInterval(() => reject(new Found(`${what} hangs`)), HANGS_MS); // watch.mjs leaves these
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearInterval(timer);
  }
}

/** What went wrong with a sequence; null: nothing. */
async function play(pool, steps) {
  const world = new World(pool);
  let step = "the beginning";
  try {
    for (const [i, [name, seed]] of steps.entries()) {
      step = `step ${i}, ${name}`;
      await inTime(BY_NAME.get(name)(world, new Random(seed)), step);
      await world.calm();
    }
    step = "the last look at padding";
    await inTime(expose_all(world), step);
    step = "the end";
    await inTime(world.end(new Random(steps.length)), step);
    await world.calm();
    await elapse(1000);
    return null;
  } catch (error) {
    await tidy(world);
    const place = error instanceof Found ? "" : `\n${error.stack}`;
    return `${step}: ${error.message}${place}`;
  }
}

/** After a problem nothing is to be relied on. */
async function tidy(world) {
  for (const entry of [...world.entries]) {
    try {
      world.drop(entry);
    } catch {} // one that is broken is left
  }
  for (const device of [...world.devices]) {
    device.gpu.destroy();
    await world.replace(device);
  }
  await Promise.allSettled(world.reads.map(({ settled }) => settled));
}

/** Random sequences, as playAll() in shrink.mjs plays them. */
export async function run(context, { seed, ...options }) {
  const pool = await prepare(context);
  const sequences = (number) => sequence(seed, number);
  return playAll((steps) => play(pool, steps), sequences, { ...options, patience: 60 });
}
