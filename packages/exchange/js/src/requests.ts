/** How a producer answers requests, one rule per function. */
import { Broken, broken, nameOf, show, skip } from "./report.js";
import {
  brief,
  EXCLUSIVE,
  eventually,
  letGo,
  refusalOf,
  type Subject,
  type Trial,
} from "./trial.js";
import { EXCHANGE } from "./types.js";

export async function optionalFields(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const absent = { versions: undefined, device: undefined, copy: undefined, writes: undefined };
  for (const request of [undefined, {}, absent, { [Symbol("later")]: 1, later: {} }]) {
    await trial.read(subject, undefined, request);
  }
}

export async function versions(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const versions of [[1], [99, 1], [1, 99]]) {
    const held = await trial.hold(subject, { versions });
    held.release();
  }
  for (const versions of [[99], [2.5], [0], []]) {
    await trial.refused(subject, { versions }, "UnsupportedError");
  }
}

/** Malformed requests (R7). */
const NONSENSE: readonly unknown[] = [
  ...[null, 5, "cpu", true, 5n],
  ...[1, "1", null, { 0: 1 }].map((versions) => ({ versions })),
  ...[5, "cpu", true].map((device) => ({ device })),
];

export async function nonsense(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const request of NONSENSE) await trial.refused(subject, request, "TypeError");
}

/** Requests with a getter that throws. */
const HOSTILE = ["versions", "device", "copy", "writes", "needs"].map((name) =>
  Object.defineProperty({}, name, {
    get() {
      throw new RangeError("a getter of the request");
    },
    enumerable: true,
  }),
);

/** Requests that a producer may refuse, or must. */
const refusable = ({ device, options }: Trial): unknown[] => {
  const other = device ? null : (options.device ?? {});
  return [
    ...[{ versions: [99] }, { versions: 1 }, { device: 5 }, { device: {} }, 5],
    ...[{ copy: true }, { copy: true, writes: true }, { writes: true }],
    ...[{ copy: false, writes: true }],
    ...[{ device: other }, { device: other, copy: false }, { device: other, copy: true }],
  ];
};

export async function usableAfterErrors(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const request of [...refusable(trial), ...HOSTILE]) {
    const answered = await tried(trial, subject, request);
    try {
      await trial.read(subject, answered ? "T5" : "X2");
    } catch (error) {
      if (answered && error instanceof Broken) throw error;
      broken("X2", `after the request ${brief(request)}, another one saw ${show(error)}`);
    }
  }
}

/** Makes a request and releases the result; other rules check its errors. Whether it was answered. */
async function tried(trial: Trial, subject: Subject, request: unknown): Promise<boolean> {
  let exchange: unknown;
  try {
    exchange = await trial.ask(subject, request);
  } catch {
    return false;
  }
  trial.held(exchange, subject).release(false);
  return true;
}

/** Whether a tensor that its user released is gone, so a hold that is left of it can be seen. */
export async function showsHolds(trial: Trial): Promise<boolean> {
  const { known } = trial;
  if (known.showsHolds === undefined) {
    const subject = await trial.make();
    known.showsHolds = letGo(subject) && (await isGone(trial, subject));
  }
  return known.showsHolds;
}

async function isGone(trial: Trial, subject: Subject): Promise<boolean> {
  return nameOf(await refusalOf(() => trial.ask(subject))) === "ReleasedError";
}

/** Whether `use` leaves no hold: its tensor is gone once the user has released it. */
export async function leavesNone(
  trial: Trial,
  use: (subject: Subject) => Promise<unknown>,
  by?: "makeFaulty",
): Promise<boolean> {
  const subject = (await trial.tryMake(undefined, undefined, 0, by)) ?? skip("make gave nothing");
  await use(subject);
  letGo(subject);
  return eventually(() => isGone(trial, subject));
}

export const ended = (trial: Trial): Promise<void> =>
  leaveNothing(trial, [{}, { copy: true }, { copy: false }, { writes: true }], false);

/** Also of errors that are not its own. */
export const nothingHeld = (trial: Trial): Promise<void> =>
  leaveNothing(trial, refusable(trial), true);

/** Makes requests, which may leave no hold when answered, nor, if `both`, when refused. */
async function leaveNothing(trial: Trial, requests: unknown[], both: boolean): Promise<void> {
  if (!(await showsHolds(trial))) skip("a hold that is left cannot be observed");
  for (const request of requests) {
    let answered = false;
    const use = async (subject: Subject) => {
      answered = await tried(trial, subject, request);
    };
    if (await leavesNone(trial, use)) continue;
    if (answered) broken("O2", `after ${brief(request)} and release(), a hold is left`);
    if (both) broken("X2", `after ${brief(request)}, which was refused, a hold is left`);
  }
}

/** A request whose getters ask the same producer in the middle of its answer. */
export async function reentered(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const plain = await trial.hold(subject);
  const exclusive = plain.fields.flags & EXCLUSIVE;
  plain.release();
  for (const name of ["versions", "device", "copy", "writes", "needs"]) {
    let inner: unknown;
    const get = () => {
      inner ??= subject.x[EXCHANGE]?.();
      if (exclusive) (inner as { release(): void }).release();
    };
    if (typeof subject.x[EXCHANGE] !== "function") skip("it has only the method that may wait");
    const request = Object.defineProperty({}, name, { get, enumerable: true });
    const outer = await trial.hold(subject, request);
    if (inner === outer.exchange) broken("O7", "two requests, one in the other, gave one object");
    const first = inner && !exclusive ? trial.held(inner, subject) : undefined;
    await outer.expect("O7");
    first?.release();
    await outer.expect("O7");
    outer.release();
  }
  // A producer that miscounts its holds frees the memory with one of them.
  if (exclusive) return;
  let inner: unknown;
  const request = {
    get copy() {
      inner ??= subject.x[EXCHANGE]?.();
      return undefined;
    },
  };
  const outer = await trial.hold(subject, request);
  letGo(subject);
  if (inner) trial.held(inner, subject).release();
  await outer.expect("O7");
}

export async function needs(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const needs of [
    {},
    { offset: 0, padTo: 16, usage: 128 | 4 },
    { exactUsage: 140, padTo: 3 },
  ]) {
    await trial.read(subject, "R6", { needs });
  }
}

export async function exclusive(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  if (!(held.fields.flags & EXCLUSIVE)) skip("its exchanges are not exclusive");
  await trial.refused(subject, {}, "BusyError");
  held.release();
  await (await trial.hold(subject)).expect();
}

export async function afterRelease(trial: Trial): Promise<void> {
  const subject = await trial.make();
  if (!letGo(subject)) skip("the result of make has no release()");
  const held = await trial.attempt(subject, {}, "ReleasedError");
  if (held) await held.expect("X1");
}

/** Which of two errors is thrown. */
export async function order(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const device = {} as never; // unknown to the producer
  const inOrder = async (rest: object) => {
    await trial.refused(subject, { ...rest, versions: "1" }, "TypeError");
    await trial.refused(subject, { ...rest, versions: [99], device: 5 }, "TypeError");
    await trial.refused(subject, { ...rest, versions: [99] }, "UnsupportedError");
  };
  await inOrder({ device });
  if (letGo(subject)) await inOrder({});
}
