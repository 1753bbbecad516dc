/** The asynchronous method (M3): its results, aborts, and what remains after a failure. */
import { honest, elsewhere as onOthers } from "./copies.js";
import { Broken, broken, isThenable, nameOf, show, skip } from "./report.js";
import { leavesNone, NONSENSE, showsHolds } from "./requests.js";
import { brief, expect, type Held, outlasts, pause, type Subject, type Trial } from "./trial.js";
import { EXCHANGE, EXCHANGE_ASYNC } from "./types.js";

/** A producer with the method. */
async function waiting(trial: Trial): Promise<Subject> {
  const subject = await trial.make();
  if (typeof subject.x[EXCHANGE_ASYNC] !== "function") skip("it has no method that may wait");
  return subject;
}

/** The method's promise. */
function start({ x }: Subject, request?: unknown): PromiseLike<unknown> {
  let promise: unknown;
  try {
    promise = x[EXCHANGE_ASYNC]?.(request);
  } catch (error) {
    broken("M3", `the method threw ${show(error)} and did not return a promise`);
  }
  return isThenable(promise) ? promise : broken("M3", "the method returned no promise");
}

async function hold(trial: Trial, subject: Subject, request?: unknown): Promise<Held> {
  return trial.answered(await start(subject, request), subject, request);
}

/** A hold, or undefined if the request was refused by one of these names. */
async function attempt(trial: Trial, subject: Subject, request: object, ...names: string[]) {
  try {
    return await hold(trial, subject, request);
  } catch (error) {
    if (names.includes(nameOf(error))) return undefined;
    throw error instanceof Broken
      ? error
      : new Broken("M3", `${brief(request)} saw ${show(error)}`);
  }
}

export async function answers(trial: Trial): Promise<void> {
  const subject = await waiting(trial);
  for (const request of [undefined, {}, { device: trial.device }, { versions: [99, 1] }]) {
    const held = await hold(trial, subject, request);
    await expect(held, subject, "M3");
    held.release();
  }
}

/** Requests that the synchronous method answers, this one answers too. */
export async function asMuch(trial: Trial): Promise<void> {
  const subject = await waiting(trial);
  const { x } = subject;
  if (typeof x[EXCHANGE] !== "function") return;
  for (const request of [
    ...[{ copy: true }, { copy: false }, { writes: true }, { copy: false, writes: true }],
    ...[{ needs: { padTo: 256, usage: 128 } }, { later: 1 }, { device: trial.device }],
  ]) {
    let answer: unknown;
    try {
      answer = x[EXCHANGE](request);
    } catch {
      continue;
    }
    const flags = ended(trial.held(answer, subject));
    const held = await attempt(trial, subject, request);
    if (!held) continue;
    await expect(held, subject, "M3");
    if (ended(held) !== flags) broken("M3", `${brief(request)} has other flags here`);
  }
}

/** The flags that a request determines. */
function ended(held: Held): number {
  held.release(false);
  return held.fields.flags & 3;
}

async function rejected(trial: Trial, subject: Subject, request: unknown): Promise<unknown> {
  let held: Held;
  try {
    held = await hold(trial, subject, request);
  } catch (error) {
    if (error instanceof Broken) throw error;
    return error;
  }
  held.release();
  return broken("M3", `${brief(request)} had to reject, and did not`);
}

export async function refusals(trial: Trial): Promise<void> {
  const subject = await waiting(trial);
  const refusal = nameOf(await rejected(trial, subject, { versions: [99] }));
  if (refusal !== "UnsupportedError") broken("M3", `version 99 was refused by ${refusal}`);
  for (const request of NONSENSE) {
    const name = nameOf(await rejected(trial, subject, request));
    if (name !== "TypeError") broken("M3", `${brief(request)} was refused by ${name}`);
  }
  await rightAfter(trial, subject);
}

/** Requests that the producer answers, maybe by waiting. */
const awaited = ({ known }: Trial): object[] => [{}, ...(known.moves ? [known.moves] : [])];

/** How long a request is awaited before it is aborted, in ms; the first: not at all. */
const MOMENTS = [undefined, 0, 5, 20];

export async function aborts(trial: Trial): Promise<void> {
  const subject = await waiting(trial);
  for (const request of awaited(trial)) {
    const reason = new Error("no longer wanted");
    const signal = AbortSignal.abort(reason);
    if ((await rejected(trial, subject, { ...request, signal })) !== reason) {
      broken("M3", `${brief(request)} with an aborted signal was not rejected with its reason`);
    }
    await rightAfter(trial, subject);
    for (const ms of MOMENTS) if (await abortedAt(ms, trial, subject, request)) break;
    await rightAfter(trial, subject);
  }
}

/**
 * Aborts a request, which must reject; or it was fulfilled by then, and is a hold. Whether it was
 * settled.
 */
async function abortedAt(
  ms: number | undefined,
  trial: Trial,
  subject: Subject,
  request: object,
): Promise<boolean> {
  const reason = new Error("not wanted any more");
  const control = new AbortController();
  const { signal } = control;
  let late = false;
  const asked = {};
  for (const [name, value] of Object.entries({ versions: [1], ...request, signal })) {
    const get = () => {
      late ||= signal.aborted && name !== "signal";
      return value;
    };
    Object.defineProperty(asked, name, { get, enumerable: true });
  }
  const promise = start(subject, asked);
  let settled = !(promise instanceof Promise); // or it may not say it at once
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  if (ms !== undefined) await pause(ms);
  // Reactions run in order: that of a promise which was settled by now comes first.
  const before = Promise.resolve().then(() => settled);
  control.abort(reason);
  let held: Held;
  try {
    held = trial.held(await promise, subject);
  } catch (error) {
    if (error instanceof Broken) throw error;
    if (error !== reason && !(await before)) {
      broken("M3", `${brief(request)}, aborted meanwhile, was rejected with ${show(error)}`);
    }
    return await before;
  }
  // An answer that was complete may still be on its way through some promises.
  const onItsWay = ms === undefined && !late && !(trial.device && "device" in request);
  if (!(await before) && !onItsWay) {
    broken("M3", `${brief(request)} was aborted while pending, and did not reject`);
  }
  await expect(held, subject, "M3");
  held.release();
  return true;
}

/** Once it is fulfilled, an abort does nothing. */
export async function abortedTooLate(trial: Trial): Promise<void> {
  for (const request of awaited(trial)) {
    const subject = await waiting(trial);
    const control = new AbortController();
    const names = ["DeviceError", "CopyError", "UnsupportedError"];
    const { signal } = control;
    const held = await attempt(trial, subject, { ...request, signal }, ...names);
    if (!held) continue;
    control.abort(new Error("too late"));
    const take = (other: Subject) => hold(trial, other, request);
    await outlasts(trial, held, subject, "M3", take);
  }
}

/** Exclusive memory is available again. */
async function rightAfter(trial: Trial, subject: Subject): Promise<void> {
  try {
    const held = await hold(trial, subject);
    await expect(held, subject, "M3");
    held.release();
  } catch (error) {
    broken("M3", `after requests that were rejected, another one saw ${show(error)}`);
  }
}

/** A tensor that outlives its user reveals a leaked hold. */
export async function nothingLeft(trial: Trial): Promise<void> {
  await waiting(trial);
  if (!(await showsHolds(trial))) return;
  for (const request of [...awaited(trial), { device: {} }]) {
    for (const copy of [undefined, true, false]) {
      let answered = false;
      const use = async (subject: Subject) => {
        try {
          (await hold(trial, subject, { ...request, copy })).release(false);
          answered = true;
        } catch {}
      };
      if (await leavesNone(trial, use)) continue;
      const asked = brief({ ...request, copy });
      if (answered) broken("O2", `after ${asked} and release(), a hold is left`);
      broken("X2", `after ${asked}, which was refused, a hold is left`);
    }
  }
}

export async function nothingLeftOfAborts(trial: Trial): Promise<void> {
  await waiting(trial);
  if (!(await showsHolds(trial))) return;
  const after = async (what: string, use: (subject: Subject) => Promise<unknown>) => {
    if (!(await leavesNone(trial, use)))
      broken("M3", `a hold is left of a request that was ${what}`);
  };
  const signal = AbortSignal.abort(new Error("no longer wanted"));
  await after("refused", (subject) => rejected(trial, subject, { versions: [99] }));
  for (const request of awaited(trial)) {
    const aborted = { ...request, signal };
    await after("aborted before", (subject) => rejected(trial, subject, aborted));
    await after("aborted meanwhile", async (subject) => {
      for (const ms of MOMENTS) if (await abortedAt(ms, trial, subject, request)) break;
    });
  }
}

/** Elements elsewhere: on the CPU those of a GPU, and the other way round. */
export async function elsewhere(trial: Trial): Promise<void> {
  const subject = await waiting(trial);
  const ask = (...request: [object, ...string[]]) => attempt(trial, subject, ...request);
  for (const copy of [undefined, false, true]) {
    const take = (each: object) => ask(each, copy ? "UnsupportedError" : "CopyError");
    (await honest(subject, { copy }, take, "M3"))?.release(false);
  }
  await onOthers(trial, subject, "M3", ask);
}
