// Faults at every call of WebGPU: each scenario again and again, its first call going wrong, its
// second, … in each way that there is. Whatever goes wrong, nothing is left over, nothing hangs,
// nobody gets wrong elements, others are untouched, and it is told once.
import { Random } from "./random.mjs";
import { scenarios } from "./scenarios.mjs";
import * as watch from "./watch.mjs";

const KINDS = ["throw", "invalid", "memory", "lost"];

/** Errors that may come of a fault; what a call itself threw comes as it is. */
const NAMES = ["DeviceError", "DeviceLostError", "KernelError", "UnsupportedError"];

const text = (value) =>
  JSON.stringify(value, (_, v) => (ArrayBuffer.isView(v) ? Array.from(v) : v));

/** One scenario on a device of its own. */
class Trial {
  problems = [];
  #kept = [];

  constructor(context, scenario, device) {
    Object.assign(this, { context, scenario, device });
    watch.listen(device);
    const empty = context.bridge.empty([0], "int8", { device });
    this.id = empty.device.id;
    empty.release();
  }

  check(condition, problem) {
    if (!condition) this.problems.push(problem);
  }

  keep = (tensor) => {
    this.#kept.push(tensor);
    return tensor;
  };

  #release() {
    for (const tensor of this.#kept.splice(0)) tensor.release();
  }

  /** The scenario, its `at`-th call going wrong: its value or its error, and what was told. */
  async act(at, kind, call) {
    const { device, keep, scenario } = this;
    const env = { device, keep, ...(await scenario.make?.({ device, keep })) };
    if (env.host) keep(env.host);
    const made = this.#kept.splice(0);
    watch.heard();
    watch.spoil(device, at, kind, call);
    const result = {};
    try {
      const run = async () => scenario.act(env);
      result.value = text(await watch.settledLater(run(), "the scenario"));
    } catch (error) {
      result.error = error;
    }
    Object.assign(result, watch.spared());
    this.#release();
    for (const tensor of made) tensor.release();
    scenario.end?.(env);
    for (const _ of [1, 2]) {
      await device.queue.onSubmittedWorkDone().catch(() => {}); // a lost device has none
      await watch.turn();
    }
    watch.elapse(1000); // what no reader was told is told now
    return { ...result, ...watch.heard() };
  }

  /** What tensors hold; what neither they nor the pool do, in bytes; what is not destroyed then. */
  async held() {
    const { library, pyodide } = this.context;
    pyodide.runPython("import gc; gc.collect()");
    await watch.turn();
    const { bytes, buffers, idleBytes } = library.webgpu.stats()[this.id];
    const all = watch.madeOn(this.device).reduce((sum, { size = 0 }) => sum + size, 0);
    for (const _ of [1, 2]) watch.elapse(10_000); // idle buffers go when it comes for the second time
    const left = watch.madeOn(this.device).length;
    const lost = all - bytes - idleBytes;
    // A kernel keeps a buffer of 16 bytes for each number until it is collected.
    const kept = Math.min(this.scenario.keeps ?? 0, left, lost / 16);
    return { tensors: library.liveTensors(), buffers, lost: lost - 16 * kept, left: left - kept };
  }
}

/** A tensor that has nothing to do with it. */
class Innocent {
  #tensor;
  #reads = [];

  constructor({ Tensor }, device) {
    const host = Tensor.fromTypedArray(new Float32Array(300).fill(3)); // a size of its own: it shares no buffer
    this.#tensor = host.to(device);
    host.release();
  }

  read() {
    const read = this.#tensor.read();
    read.catch(() => {}); // it is asked for later
    this.#reads.push(read);
  }

  /** What went wrong with it; null: nothing. */
  async end(lost) {
    this.#tensor.release();
    for (const { status, value, reason } of await watch.settled(
      Promise.allSettled(this.#reads),
      "reading another tensor",
    )) {
      if (status === "fulfilled" && value.every((each) => each === 3)) continue;
      if (lost && reason?.name === "DeviceLostError") continue;
      return status === "fulfilled" ? text(value) : `${reason}`;
    }
    return null;
  }
}

/** What a scenario gives, and its calls, when nothing goes wrong: by its name. */
const references = new Map();

async function referenceOf(context, name) {
  const found = references.get(name);
  if (found) return found;
  const device = await context.library.webgpu.requestDevice();
  const run = new Trial(context, scenarios(context)[name], device);
  await run.held(); // with a pool as empty as it is in trials
  const result = await run.act(0);
  device.destroy();
  if (result.error !== undefined) throw result.error;
  references.set(name, result);
  return result;
}

/** One call going wrong; a list of what is wrong about that. */
async function trial(context, { name, at, kind, call }) {
  const { webgpu } = context.library;
  const clean = await referenceOf(context, name);
  const device = await webgpu.requestDevice();
  const run = new Trial(context, scenarios(context)[name], device);
  const before = await run.held();
  context.other ??= await webgpu.requestDevice();
  const innocent = new Innocent(context.library, device);
  const stranger = new Innocent(context.library, context.other);
  innocent.read();
  stranger.read();
  const result = await run.act(at, kind, call);
  // Several reads at once come back in any order.
  const sorted = ({ calls }) => text(calls.toSorted());
  if (at > 0 && result.hit === null && sorted(result) !== sorted(clean)) {
    run.problems.push(`no such call: ${result.calls}, and not ${clean.calls}`);
  }
  const lost = result.hit !== null && kind === "lost";
  if (!lost) innocent.read();
  stranger.read();
  const harm = (await innocent.end(lost)) ?? (await stranger.end(false));
  run.check(harm === null, `another tensor's read: ${harm}`);
  judge(run, clean, kind, result);
  const after = await run.held();
  if (lost) {
    run.check(after.tensors === before.tensors, `tensors: ${before.tensors}, ${after.tensors}`);
    run.check(after.buffers === 0, `${after.buffers} buffers under tensors`);
  } else {
    run.check(text(after) === text(before), `held: ${text(before)}, then ${text(after)}`);
    const again = await run.act(0);
    run.check(again.value === clean.value, `afterwards: ${again.value ?? again.error}`);
    const told = again.console.length + again.uncaptured.length;
    run.check(told === 0, `told afterwards: ${text(again)}`);
  }
  device.destroy();
  return run.problems;
}

function judge(run, clean, kind, { value, error, hit, console, uncaptured, unhandled }) {
  run.check(unhandled.length === 0, `rejected unheard: ${unhandled}`);
  if (error === undefined) {
    run.check(value === clean.value, `${value} instead of ${clean.value}`);
  } else {
    const injected = watch.isInjected(error);
    const python = error.name === "PythonError";
    run.check(hit !== null, `without a fault: ${error}`);
    run.check(injected || python || NAMES.includes(error.name), `${error}\n${error.stack}`);
    run.check(!console.includes(error), "the error was told twice");
  }
  const small = hit?.endsWith("small") && kind !== "throw";
  const told = console.length + (error === undefined ? 0 : 1);
  // Whether all was well nobody knows where it cannot be asked.
  const least = hit?.endsWith("popErrorScope") || run.scenario.retries ? 0 : 1;
  if (hit && kind !== "lost" && !small) {
    run.check(told >= least && told <= 1, `told ${told} times: ${console}`);
  }
  // Of small buffers nobody asks how their making went: that would cost more than to make them.
  if (small) return;
  run.check(uncaptured.length === 0, `told to the device: ${uncaptured}`);
}

/** Every call of every scenario, in all ways that it can fail. */
async function* plans(context) {
  for (const name of Object.keys(scenarios(context))) {
    const { calls } = await referenceOf(context, name);
    for (const [index, call] of calls.entries()) {
      for (const kind of KINDS) {
        if (watch.canBe(kind, call)) yield { name, at: index + 1, kind, call };
      }
    }
  }
}

/**
 * Faults, in an order by the seed, until the time is over.
 *
 * @param only - one of them by name, at and kind; or all of one scenario by name
 */
export async function run(context, { seed, skip, seconds, only }) {
  const end = performance.now() + 1000 * seconds;
  let todo = await Array.fromAsync(plans(context));
  const found = [];
  if (only) {
    const fits = (plan) => Object.entries(only).every(([key, value]) => plan[key] === value);
    todo = todo.filter(fits);
  } else {
    new Random(seed).shuffle(todo);
    todo = todo.slice(skip);
  }
  let trials = 0;
  for (const plan of todo) {
    if (performance.now() > end && !only) break;
    trials++;
    try {
      const problems = await trial(context, plan);
      found.push(...problems.map((problem) => ({ plan, problem })));
    } catch (error) {
      found.push({ plan, problem: `the trial: ${error}\n${error.stack}` });
    }
  }
  return { trials, all: trials === todo.length, found };
}
