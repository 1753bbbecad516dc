/**
 * The rules for producers. Left out is what nobody can see from outside: M4 (a name), O3 and D2 to D5
 * (what is not done), S4 and T3 (rights of consumers), N1 to N3, O6 and S7 (what consumers do), V1
 * (seen with R2).
 */
import { writeBuffer } from "./device.js";
import { bytesOf, elements, type Fields, overlap, placeOf } from "./fields.js";
import { Book, Broken, broken, Ended, isThenable, nameOf, show, skip } from "./report.js";
import { expect, expectNow, flush, type Held, letGo, type Subject, Trial } from "./trial.js";
import {
  type BufferLike,
  type DeviceLike,
  EXCHANGE_ASYNC,
  type ProducerOptions,
  type Report,
} from "./types.js";
import { DTYPES, encode, get, type Kind, kindOf, same } from "./values.js";

/** In the order of the text, which is that of the report. */
const RULES = [
  "M1 M2 M3 R1 R2 R3 R4 R5 R6 R7 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 S1 S2 S3 S5 S6 S8",
  "T1 T2 T4 T5 O1 O2 O4 O5 D1 X1 X2",
].flatMap((ids) => ids.split(" "));
/** Those that one exchange shows, whose elements were read as it says. */
const SEEN = "M2 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 S1".split(" ");
const EXCLUSIVE = 8;

type Check = (trial: Trial) => Promise<unknown>;

/**
 * Tests a producer by the rules of js/EXCHANGE.md. The promise is never rejected: whatever the
 * factory and its producers do is found in the report.
 *
 * @returns an entry for each rule that a program can test
 */
export async function conformance(options: ProducerOptions): Promise<Report> {
  const { make, device, dtypes = DTYPES, timeoutMs = 1000 } = Object(options) as ProducerOptions;
  const book = new Book(RULES, timeoutMs);
  if (typeof make !== "function") {
    await book.check("M1", "options", () => broken("M1", `make is ${show(make)}, not a function`));
  }
  const kinds = dtypes.map(kindOf).filter((kind) => kind !== undefined);
  const unknown = dtypes.filter((name) => !kindOf(name));
  if (unknown.length) {
    await book.check("F3", "options", () =>
      broken("F3", `${show(unknown)} are no dtypes of DLPack`),
    );
  }
  let made = false;
  if (!device) for (const id of ["T1", "D1"]) book.skipped(id, "no GPUDevice was given");
  for (const where of typeof make !== "function" ? [] : device ? [null, device] : [null]) {
    if (await testOn(where, { make, device, timeoutMs }, kinds, book)) made = true;
  }
  if (!made && !book.isBroken("M1")) {
    await book.check("M1", "everywhere", () =>
      broken("M1", "make made nothing that could be tested"),
    );
  }
  return book.report();
}

/** Whether anything was made there. */
async function testOn(
  device: DeviceLike | null,
  options: ProducerOptions,
  kinds: readonly Kind[],
  book: Book,
): Promise<boolean> {
  const name = device ? "GPU" : "CPU";
  let base: Subject | undefined;
  const run = (id: string, check: Check, ...after: string[]) => {
    const trial = new Trial(options, device, base);
    const test = async () => {
      try {
        const note = await check(trial);
        for (const seen of trial.seen) book.pass(seen);
        return note;
      } finally {
        trial.end();
      }
    };
    // A factory that hangs once would do so at every rule.
    return book.check(id, name, test, { after, hangs: () => trial.making });
  };

  const began = await run("M1", async (trial) => {
    base = await firstMade(trial, kinds);
    await basics(trial, base);
    for (const id of SEEN) book.pass(id);
    book.pass(device ? "T1" : "T2");
    if (device) book.pass("D1");
  });
  // Where the simplest exchange is wrong, nothing else can be told from that.
  if (!began) return base !== undefined;
  for (const [id, check, ...after] of CHECKS) await run(id, check, ...after);
  const made: string[] = [];
  for (const kind of kinds) {
    await run("S8", async (trial) => {
      if (await oneDtype(trial, kind)) made.push(kind.name);
    });
  }
  book.pass("S8", `${name}: made were ${made.join(", ")}`);
  return true;
}

async function firstMade(trial: Trial, kinds: readonly Kind[]): Promise<Subject> {
  try {
    for (const shape of [[2, 3], [6]]) {
      for (const kind of kinds) {
        const subject = await trial.tryMake(kind, shape);
        if (subject) return subject;
      }
    }
  } catch (error) {
    // Whatever it does here, it would do again.
    throw error instanceof Ended ? error : new Ended(show(error));
  }
  return skip("make gave undefined for all dtypes");
}

/** Each with the rules without which it cannot be told. */
const CHECKS: readonly (readonly [string, Check, ...string[]])[] = [
  ["T5", otherTensors],
  ["O2", releasedTwice],
  ["O1", outlives, "T5", "O2"],
  ["F14", staysTheSame, "O1", "S3"],
  ["F4", shapes],
  ["R1", optionalFields],
  ["R2", versions],
  ["R3", devices],
  ["R7", nonsense],
  ["X2", usableAfterErrors],
  ["R6", needs],
  ["O5", exclusive],
  ["R4", copies, "R1"],
  ["R5", writing, "R1"],
  ["O4", written, "R4", "R5", "T5"],
  ["S5", neighbours, "T5"],
  ["S6", padding],
  ["T4", sharedFlush, "T5"],
  ["S2", growing],
  ["X1", afterRelease],
  ["M3", later, "R1", "R2", "R3", "O1"],
];

/** Why there are no two holds to test with. */
async function two(trial: Trial, subject: Subject): Promise<[Held, Held]> {
  const first = await trial.hold(subject);
  if (first.fields.flags & EXCLUSIVE) skip("its exchanges are exclusive");
  return [first, await trial.hold(subject)];
}

/** What everything else is built on: exchanges, one after the other and at once, that are right. */
async function basics(trial: Trial, subject: Subject): Promise<void> {
  const first = await firstHeld(trial, subject);
  await expect(first, subject);
  if (!(first.fields.flags & EXCLUSIVE)) {
    const second = await trial.hold(subject);
    if (second.exchange === first.exchange) broken("M1", "two calls returned one object");
    second.release();
    await expectNow(first, subject.values, "O1");
  }
  first.release();
  let again: Held;
  try {
    again = await trial.hold(subject);
  } catch (error) {
    if (error instanceof Broken) throw error;
    broken("O1", `after an exchange was released, the next request saw ${show(error)}`);
  }
  await expect(again, subject, "O1");
}

async function firstHeld(trial: Trial, subject: Subject): Promise<Held> {
  try {
    return await trial.hold(subject);
  } catch (error) {
    if (error instanceof Broken) throw error;
    for (const request of [{}, { versions: [1] }] as { versions?: number[] }[]) {
      if (await works(() => trial.hold(subject, request))) {
        broken(
          "R1",
          `a request without ${request.versions ? "fields" : "argument"} saw ${show(error)}`,
        );
      }
    }
    throw error;
  }
}

async function works(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch {
    return false;
  }
}

async function optionalFields(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const absent = { versions: undefined, device: undefined, copy: undefined, writes: undefined };
  for (const request of [undefined, {}, absent, { [Symbol("later")]: 1, later: {} }]) {
    const held = await trial.hold(subject, request);
    await expect(held, subject);
    held.release();
  }
}

async function versions(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const versions of [[1], [99, 1], [1, 99]]) {
    const held = await trial.hold(subject, { versions });
    held.release();
  }
  for (const versions of [[99], [2.5], [0], []]) {
    await trial.refused(subject, { versions }, "UnsupportedError");
  }
}

async function devices(trial: Trial): Promise<void> {
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

async function nonsense(trial: Trial): Promise<void> {
  const subject = await trial.make();
  for (const versions of [1, "1", null, { 0: 1 }]) {
    await trial.refused(subject, { versions }, "TypeError");
  }
  for (const device of [5, "cpu", true]) await trial.refused(subject, { device }, "TypeError");
}

async function usableAfterErrors(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const get = () => {
    throw new RangeError("a getter of the request");
  };
  const hostile = ["versions", "device", "copy", "writes", "needs"].map((name) =>
    Object.defineProperty({}, name, { get, enumerable: true }),
  );
  for (const request of [{ versions: [99] }, { versions: 1 }, { device: 5 }, ...hostile]) {
    try {
      trial.held(await trial.ask(subject, request), subject).release();
    } catch {} // which error it is, is for other rules
    try {
      const held = await trial.hold(subject);
      await expect(held, subject, "X2");
      held.release();
    } catch (error) {
      broken("X2", `after a request that was refused, another one saw ${show(error)}`);
    }
  }
}

async function needs(trial: Trial): Promise<void> {
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

async function shapes(trial: Trial): Promise<void> {
  for (const shape of [[], [0, 3], [5], [2, 1, 3]]) {
    const subject = await trial.tryMake(undefined, shape);
    if (subject) await expect(await trial.hold(subject), subject);
  }
}

async function exclusive(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  if (!(held.fields.flags & EXCLUSIVE)) skip("its exchanges are not exclusive");
  await trial.refused(subject, {}, "BusyError");
  held.release();
  await expect(await trial.hold(subject), subject);
}

async function copies(trial: Trial): Promise<unknown> {
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

async function writing(trial: Trial): Promise<unknown> {
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

async function neighbours(trial: Trial): Promise<void> {
  const [a, b] = [await trial.make(), await trial.make(20)];
  const [x, y] = [await trial.hold(a), await trial.hold(b)];
  if (overlap(x.fields, y.fields)) broken("S5", "two tensors count the same bytes as theirs");
}

async function padding(trial: Trial): Promise<unknown> {
  const secret = (await trial.tryMake(undefined, [4, 16], 30)) ?? (await trial.make(30));
  (await trial.hold(secret)).release();
  const { kind } = secret;
  if (!letGo(secret)) secret.x.release = undefined;
  const subject = (await trial.tryMake(kind, [1, 5])) ?? (await trial.make());
  const { fields } = await trial.hold(subject);
  const end = fields.byteOffset + fields.capacity;
  if (fields.strides || end <= fields.to) skip("there is no padding");
  const bytes = await bytesOf(fields, fields.to, Math.min(end, fields.to + 4096));
  if (bytes.every((byte) => byte === 0)) return undefined;
  const view = new DataView(bytes.buffer);
  const size = kind.bits / 8;
  for (let at = 0; size >= 2 && at + size <= bytes.length; at += size) {
    const seen = get(view, kind, at * 8);
    if (secret.values.includes(seen)) broken("S6", "padding shows a tensor that was released");
  }
  return "padding should be 0, and is not";
}

async function otherTensors(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  await expect(held, subject);
  const other = await trial.make(20);
  await expect(await trial.hold(other), other, "T5");
  await expectNow(held, subject.values, "T5");
}

async function sharedFlush(trial: Trial): Promise<void> {
  const [a, b] = [await trial.make(), await trial.make(20)];
  const [x, y] = [await trial.hold(a), await trial.hold(b)];
  if (x.fields.flush !== y.fields.flush) skip("exchanges of two tensors have a flush each");
  flush(y);
  await expectNow(x, a.values, "T4");
  await expectNow(y, b.values, "T4");
}

async function releasedTwice(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const [a, b] = await two(trial, subject);
  a.release();
  for (let i = 0; i < 3; i++) {
    try {
      a.fields.release();
    } catch (error) {
      broken("O2", `release() threw ${show(error)} when it was called again`);
    }
  }
  await expect(b, subject, "O2");
  b.release();
  await expect(await trial.hold(subject), subject, "O2");
}

async function outlives(trial: Trial): Promise<unknown> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  const array = ArrayBuffer.isView(held.fields.data);
  if (!letGo(subject)) return "what make gives has no release()";
  // What may be given the memory, were it free.
  const other = await trial.make(20);
  await expect(await trial.hold(other), other);
  const { data, to } = held.fields;
  if (ArrayBuffer.isView(data) && data.byteLength < to) broken("S3", "data was detached");
  await expect(held, subject, "O1");
  if (array) trial.seen.add("S3");
  return undefined;
}

async function staysTheSame(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const { exchange, fields } = await trial.hold(subject);
  const before = told(fields);
  const at = placeOf(fields);
  if (!(fields.flags & EXCLUSIVE)) (await trial.hold(subject)).release();
  letGo(subject);
  await trial.hold(await trial.make(20));
  const now = exchange as unknown as Fields;
  if (told(now) !== before) broken("F14", `it said ${before}, and says ${told(now)}`);
  const then = placeOf(now);
  const { device } = exchange as { device: { gpu: unknown } };
  if (device.gpu !== fields.gpu || then.buffer !== at.buffer || then.start !== at.start) {
    broken("F14", "its data or device is another at the second look");
  }
}

function told({ shape, strides, byteOffset, capacity, flags }: Fields): string {
  return JSON.stringify({ shape, strides, byteOffset, capacity, flags });
}

async function growing(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const { x } = subject;
  const held = await trial.hold(subject);
  const moving = "memory" in held.fields.data;
  if (typeof x.grow !== "function") skip("what make gives has no grow()");
  await expect(held, subject);
  x.grow();
  const rule = moving ? "S2" : "S3";
  let got: unknown;
  try {
    got = await elements(held.fields);
  } catch (error) {
    broken(rule, `after grow() its elements cannot be read: ${show(error)}`);
  }
  if (!same(got as number[], subject.values)) broken(rule, "after grow() its elements are others");
}

async function written(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const turns: [Subject["values"], boolean[]][] = [
    [[...subject.values].reverse(), [true]],
    [subject.values, []],
  ];
  for (const [values, wrote] of turns) {
    const request = { writes: true, copy: false };
    const held = await trial.attempt(subject, request, "UnsupportedError", "CopyError");
    if (!held) skip("its memory may not be written");
    flush(held);
    write(held, subject.kind, values);
    held.release(...wrote);
    const again = await trial.hold(subject);
    flush(again);
    await expectNow(again, values, "O4");
    again.release();
  }
}

function write({ fields }: Held, kind: Kind, values: Subject["values"]): void {
  const bytes = encode(kind, values);
  const size = kind.bits / 8;
  const { data, gpu, byteOffset, strides } = fields;
  if (size < 1 || strides || fields.kind !== kind) skip("its elements are not next to each other");
  if (gpu) {
    writeBuffer(gpu, data as BufferLike, byteOffset, bytes);
  } else {
    const { buffer, start } = placeOf(fields);
    new Uint8Array(buffer as ArrayBuffer, start + byteOffset, bytes.length).set(bytes);
  }
}

async function afterRelease(trial: Trial): Promise<void> {
  const subject = await trial.make();
  if (!letGo(subject)) skip("what make gives has no release()");
  const held = await trial.attempt(subject, {}, "ReleasedError");
  if (held) await expect(held, subject, "X1");
}

async function later(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const { x } = subject;
  if (typeof x[EXCHANGE_ASYNC] !== "function") skip("it has no method that may wait");
  const ask = async (request?: unknown) => {
    let promise: unknown;
    try {
      promise = x[EXCHANGE_ASYNC]?.(request);
    } catch (error) {
      broken("M3", `the method threw ${show(error)} and did not return a promise`);
    }
    return isThenable(promise) ? await promise : broken("M3", "the method returned no promise");
  };
  const rejected = async (request: unknown) => {
    try {
      const held = trial.held(await ask(request), subject);
      held.release();
    } catch (error) {
      return error;
    }
    return broken("M3", "a promise that had to reject did not");
  };
  for (const request of [undefined, {}, { device: trial.device }, { versions: [99, 1] }]) {
    const held = trial.held(await ask(request), subject);
    await expect(held, subject, "M3");
    held.release();
  }
  const refusal = nameOf(await rejected({ versions: [99] }));
  if (refusal !== "UnsupportedError") broken("M3", `version 99 was refused by ${refusal}`);
  const reason = new Error("no longer wanted");
  if ((await rejected({ signal: AbortSignal.abort(reason) })) !== reason) {
    broken("M3", "what was aborted is not rejected with the signal's reason");
  }
  if (!trial.device) return;
  try {
    const held = trial.held(await ask({ device: null }), subject);
    await expect(held, subject, "M3");
  } catch (error) {
    if (nameOf(error) !== "DeviceError") throw error;
  }
}

/** Whether it is made. */
async function oneDtype(trial: Trial, kind: Kind): Promise<boolean> {
  const subject = await trial.tryMake(kind);
  if (!subject) return false;
  await expect(await trial.hold(subject), subject);
  return true;
}
