/** The asynchronous method (M3): its results, and what remains after a failure. */
import type { Fields } from "./fields.js";
import { broken, isThenable, nameOf, show, skip } from "./report.js";
import { endsWithItsUser } from "./requests.js";
import { expect, type Held, type Subject, type Trial } from "./trial.js";
import { EXCHANGE, EXCHANGE_ASYNC } from "./types.js";

export async function later(trial: Trial): Promise<void> {
  const subject = await trial.make();
  if (typeof subject.x[EXCHANGE_ASYNC] !== "function") skip("it has no method that may wait");
  for (const request of [undefined, {}, { device: trial.device }, { versions: [99, 1] }]) {
    const held = trial.held(await ask(subject, request), subject);
    await expect(held, subject, "M3");
    held.release();
  }
  await asMuch(trial, subject);
  await refusals(trial, subject);
  await rightAfter(trial, subject);
  await nothingLeft(trial);
  if (trial.device) await onTheCPU(trial, subject);
}

async function ask({ x }: Subject, request?: unknown): Promise<unknown> {
  let promise: unknown;
  try {
    promise = x[EXCHANGE_ASYNC]?.(request);
  } catch (error) {
    broken("M3", `the method threw ${show(error)} and did not return a promise`);
  }
  return isThenable(promise) ? await promise : broken("M3", "the method returned no promise");
}

/** Requests that the synchronous method answers, this one answers too. */
async function asMuch(trial: Trial, subject: Subject): Promise<void> {
  const { x } = subject;
  if (typeof x[EXCHANGE] !== "function") return;
  for (const request of [
    ...[{ copy: true }, { copy: false }, { writes: true }, { copy: false, writes: true }],
    ...[{ needs: { padTo: 16, usage: 128 } }, { later: 1 }, { device: trial.device }],
  ]) {
    let answer: unknown;
    try {
      answer = x[EXCHANGE](request);
    } catch {
      continue;
    }
    const flags = ended(trial.held(answer, subject));
    let held: Held;
    try {
      held = trial.held(await ask(subject, request), subject);
    } catch (error) {
      broken(
        "M3",
        `${JSON.stringify(request)} is answered by the other method, here by ${show(error)}`,
      );
    }
    await expect(held, subject, "M3");
    if (ended(held) !== flags) broken("M3", `${JSON.stringify(request)} has other flags here`);
  }
}

/** The flags that a request determines. */
function ended(held: Held): number {
  const { flags }: Fields = held.fields;
  held.release(false);
  return flags & 3;
}

async function rejected(trial: Trial, subject: Subject, request: object): Promise<unknown> {
  try {
    trial.held(await ask(subject, request), subject).release();
  } catch (error) {
    return error;
  }
  return broken("M3", "a promise that had to reject did not");
}

async function refusals(trial: Trial, subject: Subject): Promise<void> {
  const refusal = nameOf(await rejected(trial, subject, { versions: [99] }));
  if (refusal !== "UnsupportedError") broken("M3", `version 99 was refused by ${refusal}`);
  const reason = new Error("no longer wanted");
  if ((await rejected(trial, subject, { signal: AbortSignal.abort(reason) })) !== reason) {
    broken("M3", "what was aborted is not rejected with the signal's reason");
  }
  await abortedMeanwhile(trial, subject);
}

/** A request that was fulfilled before it was aborted is a hold. */
async function abortedMeanwhile(trial: Trial, subject: Subject): Promise<void> {
  const reason = new Error("not wanted any more");
  const control = new AbortController();
  const answer = ask(subject, { signal: control.signal });
  control.abort(reason);
  try {
    trial.held(await answer, subject).release();
  } catch (error) {
    if (error !== reason) broken("M3", `what was aborted meanwhile rejects with ${show(error)}`);
  }
}

/** Exclusive memory is available again. */
async function rightAfter(trial: Trial, subject: Subject): Promise<void> {
  try {
    const held = trial.held(await ask(subject), subject);
    await expect(held, subject, "M3");
    held.release();
  } catch (error) {
    broken("M3", `after requests that were rejected, another one saw ${show(error)}`);
  }
}

/** A tensor that outlives its user reveals a leaked hold. */
async function nothingLeft(trial: Trial): Promise<void> {
  if (!(await endsWithItsUser(trial, async () => {}))) return;
  const after = async (what: string, use: (subject: Subject) => Promise<unknown>) => {
    const ends = await endsWithItsUser(trial, async (subject) => {
      await use(subject);
      await new Promise((resolve) => setTimeout(resolve, 10)); // work without a reader
    });
    if (!ends) broken("M3", `a hold is left of a request that was ${what}`);
  };
  const signal = AbortSignal.abort(new Error("no longer wanted"));
  await after("refused", (subject) => rejected(trial, subject, { versions: [99] }));
  await after("aborted before", (subject) => rejected(trial, subject, { signal }));
  await after("aborted meanwhile", (subject) => abortedMeanwhile(trial, subject));
}

async function onTheCPU(trial: Trial, subject: Subject): Promise<void> {
  try {
    const held = trial.held(await ask(subject, { device: null }), subject);
    await expect(held, subject, "M3");
  } catch (error) {
    if (nameOf(error) !== "DeviceError") throw error;
  }
}
