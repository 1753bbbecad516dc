/** How a producer answers requests, one rule per function. */
import { overlap } from "./fields.js";
import { broken, nameOf, show, skip } from "./report.js";
import { EXCLUSIVE, expect, letGo, type Subject, type Trial } from "./trial.js";
import { EXCHANGE } from "./types.js";

export async function optionalFields(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const absent = { versions: undefined, device: undefined, copy: undefined, writes: undefined };
  for (const request of [undefined, {}, absent, { [Symbol("later")]: 1, later: {} }]) {
    const held = await trial.hold(subject, request);
    await expect(held, subject);
    held.release();
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

export async function devices(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const there = await trial.hold(subject, { device: trial.device });
  await expect(there, subject, "R3");
  there.release();
  const other = trial.device ? null : trial.options.device;
  if (!other && !trial.device) return;
  for (const copy of [undefined, false]) {
    const names = copy === false ? ["DeviceError", "CopyError"] : ["DeviceError"];
    const moved = await trial.attempt(subject, { device: other, copy }, ...names);
    if (moved) await expect(moved, subject, "R3");
    moved?.release();
  }
}

export async function nonsense(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const versions of [1, "1", null, { 0: 1 }]) {
    await trial.refused(subject, { versions }, "TypeError");
  }
  for (const device of [5, "cpu", true]) await trial.refused(subject, { device }, "TypeError");
}

export async function usableAfterErrors(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const get = () => {
    throw new RangeError("a getter of the request");
  };
  const hostile = ["versions", "device", "copy", "writes", "needs"].map((name) =>
    Object.defineProperty({}, name, { get, enumerable: true }),
  );
  const requests = [
    ...[{ versions: [99] }, { versions: 1 }, { device: 5 }, { device: {} }, { copy: true }],
    ...[{ copy: false, writes: true }, ...hostile],
  ];
  for (const request of requests) {
    await tried(trial, subject, request);
    try {
      const held = await trial.hold(subject);
      await expect(held, subject, "X2");
      held.release();
    } catch (error) {
      broken("X2", `after a request that was refused, another one saw ${show(error)}`);
    }
  }
}

/** Makes a request and releases the result; other rules check its errors. */
async function tried(trial: Trial, subject: Subject, request: object): Promise<void> {
  try {
    trial.held(await trial.ask(subject, request), subject).release(false);
  } catch {}
}

/** A hold that an error leaks keeps a tensor alive after its user has released it. */
export async function nothingHeld(trial: Trial): Promise<void> {
  if (!(await endsWithItsUser(trial, async () => {})))
    skip("its last release() cannot be observed");
  for (const request of [{ versions: [99] }, { versions: 1 }, { device: 5 }, { device: {} }]) {
    const ends = await endsWithItsUser(trial, (subject) => tried(trial, subject, request));
    if (!ends) broken("X2", "after a request that was refused, a hold is left");
  }
}

/** Whether a tensor refuses requests once its user has released it, after `use`. */
export async function endsWithItsUser(
  trial: Trial,
  use: (subject: Subject) => Promise<void>,
): Promise<boolean> {
  const subject = await trial.make();
  (await trial.hold(subject)).release();
  await use(subject);
  if (!letGo(subject)) return false;
  try {
    const { release } = Object(await trial.ask(subject)) as { release?: () => void };
    release?.();
    return false;
  } catch (error) {
    return nameOf(error) === "ReleasedError";
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
    await expect(outer, subject, "O7");
    first?.release();
    await expect(outer, subject, "O7");
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
  await expect(outer, subject, "O7");
}

export async function needs(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const needs of [
    {},
    { offset: 0, padTo: 16, usage: 128 | 4 },
    { exactUsage: 140, padTo: 3 },
  ]) {
    const held = await trial.hold(subject, { needs });
    await expect(held, subject, "R6");
    held.release();
  }
}

export async function exclusive(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  if (!(held.fields.flags & EXCLUSIVE)) skip("its exchanges are not exclusive");
  await trial.refused(subject, {}, "BusyError");
  held.release();
  await expect(await trial.hold(subject), subject);
}

export async function copies(trial: Trial): Promise<unknown> {
  const subject = await trial.make();
  const own = await trial.attempt(subject, { copy: false }, "CopyError");
  if (own && own.fields.flags & 2) broken("R4", "copy: false was answered with flag 2");
  own?.release();
  const again = own && (await trial.hold(subject, { copy: false }));
  if (again && !overlap(again.fields, own.fields) && subject.values.length > 0) {
    broken("R4", "copy: false gave other memory at the second time");
  }
  again?.release();
  const copy = await trial.attempt(subject, { copy: true }, "UnsupportedError");
  if (!copy) return "copies are refused";
  if (!(copy.fields.flags & 2)) broken("R4", "copy: true was answered without flag 2");
  await expect(copy, subject, "R4");
  if (own && overlap(copy.fields, own.fields)) broken("R4", "copy: true gave the memory itself");
  return undefined;
}

export async function writing(trial: Trial): Promise<unknown> {
  const subject = await trial.make();
  let given = 0;
  for (const copy of [undefined, false, true]) {
    const names = copy === undefined ? ["UnsupportedError"] : ["UnsupportedError", "CopyError"];
    const held = await trial.attempt(subject, { writes: true, copy }, ...names);
    if (held && held.fields.flags & 1) broken("R5", "writes: true was answered with flag 1");
    if (held) given++;
    held?.release(false);
  }
  return given ? undefined : "writing is refused";
}

export async function afterRelease(trial: Trial): Promise<void> {
  const subject = await trial.make();
  if (!letGo(subject)) skip("what make gives has no release()");
  const held = await trial.attempt(subject, {}, "ReleasedError");
  if (held) await expect(held, subject, "X1");
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
