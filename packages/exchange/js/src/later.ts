/** The asynchronous method (M3): what only it has, and all that the first method answers. */
import { Broken, broken, show } from "./report.js";
import { leavesNone, showsHolds } from "./requests.js";
import { brief, type Held, pause, refusalOf, type Subject, start, type Trial } from "./trial.js";
import { EXCHANGE } from "./types.js";

/** Requests that the synchronous method answers, this one answers too. */
export async function asMuch(trial: Trial): Promise<void> {
  const subject = await trial.make();
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
    const held = await trial.hold(subject, request);
    await held.expect("M3");
    if (ended(held) !== flags) broken("M3", `${brief(request)} has other flags here`);
  }
}

/** The flags that a request determines. */
function ended(held: Held): number {
  held.release(false);
  return held.fields.flags & 3;
}

async function rejected(trial: Trial, subject: Subject, request: unknown): Promise<unknown> {
  const error = await refusalOf(() => trial.hold(subject, request));
  if (error instanceof Broken) throw error;
  return error ?? broken("M3", `${brief(request)} had to reject, and did not`);
}

/** Requests that the producer answers, maybe by waiting. */
const awaited = ({ known }: Trial): object[] => [{}, ...(known.moves ? [known.moves] : [])];

/** How long a request is awaited before it is aborted, in ms; the first: not at all. */
const MOMENTS = [undefined, 0, 5, 20];

export async function aborts(trial: Trial): Promise<void> {
  const subject = await trial.make();
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
  const promise = start(subject.x, asked);
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
  await held.expect("M3");
  held.release();
  return true;
}

/** Once it is fulfilled, an abort does nothing. */
export async function abortedTooLate(trial: Trial): Promise<void> {
  for (const request of awaited(trial)) {
    const subject = await trial.make();
    const control = new AbortController();
    const names = ["DeviceError", "CopyError", "UnsupportedError"];
    const { signal } = control;
    const held = await trial.attempt(subject, { ...request, signal }, ...names);
    if (!held) continue;
    control.abort(new Error("too late"));
    const take = (other: Subject) => trial.hold(other, request);
    await trial.outlasts(held, "M3", take);
  }
}

/** Exclusive memory is available again. */
async function rightAfter(trial: Trial, subject: Subject): Promise<void> {
  try {
    await trial.read(subject, "M3");
  } catch (error) {
    broken("M3", `after requests that were rejected, another one saw ${show(error)}`);
  }
}

/** A tensor that outlives its user reveals a leaked hold. */
export async function nothingLeft(trial: Trial): Promise<void> {
  if (!(await showsHolds(trial))) return;
  const after = async (what: string, use: (subject: Subject) => Promise<unknown>) => {
    if (!(await leavesNone(trial, use)))
      broken("M3", `a hold is left of a request that was ${what}`);
  };
  const signal = AbortSignal.abort(new Error("no longer wanted"));
  for (const request of awaited(trial)) {
    const aborted = { ...request, signal };
    await after("aborted before", (subject) => rejected(trial, subject, aborted));
    await after("aborted meanwhile", async (subject) => {
      for (const ms of MOMENTS) if (await abortedAt(ms, trial, subject, request)) break;
    });
  }
}
