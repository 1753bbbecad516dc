/** The lifetime of memory that a producer hands out, one rule per function. */
import { writeBuffer } from "./device.js";
import { elements, type Fields, placeOf } from "./fields.js";
import { broken, mustNotThrow, show, skip } from "./report.js";
import { COPIED, EXCLUSIVE, type Held, letGo, pause, type Subject, type Trial } from "./trial.js";
import type { BufferLike } from "./types.js";
import { encode, type Kind, same } from "./values.js";

async function one(trial: Trial, subject: Subject, request: object): Promise<Held> {
  const held = await trial.attempt(subject, request, "UnsupportedError");
  return held ?? skip("copies are refused");
}

export async function shapes(trial: Trial): Promise<void> {
  for (const shape of [[], [0, 3], [5], [2, 1, 3]]) {
    const subject = await trial.tryMake(undefined, shape);
    if (!subject) continue;
    await (await trial.hold(subject)).expect();
    if (shape.includes(0)) trial.seen.add("S9");
  }
}

export async function otherTensors(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  await held.expect();
  await trial.occupy();
  await held.expectNow("T5");
  await pause(30); // a late write
  await held.expectNow("T5");
}

/** Holds a tensor; the function that it gives tests at the end whether all is as it was. */
export async function lasting(trial: Trial): Promise<() => Promise<void>> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  await held.expect();
  return () => held.expectNow("T5");
}

export async function sharedFlush(trial: Trial): Promise<void> {
  const [a, b] = [await trial.make(), await trial.make(20)];
  const [x, y] = [await trial.hold(a), await trial.hold(b)];
  if (x.fields.flush !== y.fields.flush) skip("exchanges of two tensors have a flush each");
  y.flush();
  await x.expectNow("T4");
  await y.expectNow("T4");
}

export async function releasedTwice(trial: Trial, request = {}): Promise<void> {
  const subject = await trial.make();
  const a = await one(trial, subject, request);
  if (a.fields.flags & EXCLUSIVE) skip("its exchanges are exclusive");
  const b = await trial.hold(subject);
  a.release();
  for (let i = 0; i < 3; i++) {
    mustNotThrow("O2", "release()", () => a.fields.release(), " when it was called again");
  }
  await trial.occupy("O2");
  await b.expect("O2");
  b.release();
  await (await trial.hold(subject)).expect("O2");
}

export async function outlives(trial: Trial, request = {}): Promise<unknown> {
  const subject = await trial.make();
  const held = await one(trial, subject, request);
  const array = ArrayBuffer.isView(held.fields.data);
  if (!letGo(subject)) return "the result of make has no release()";
  await trial.outlasts(held, "O1");
  if (array) trial.seen.add("S3");
  return undefined;
}

export async function staysTheSame(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const holds = [await trial.hold(subject)];
  if (!((holds[0] as Held).fields.flags & EXCLUSIVE)) {
    (await trial.hold(subject)).release();
    holds.push(await trial.hold(subject));
  }
  const before = holds.map(({ fields }) => [told(fields), placeOf(fields).start] as const);
  letGo(subject);
  await trial.hold(await trial.make(20));
  await pause(5);
  subject.given.push(1); // a producer that keeps using it has reshaped its tensor
  holds.forEach(({ exchange, fields }, i) => {
    const [said, start] = before[i] as (typeof before)[0];
    const now = exchange as unknown as Fields;
    if (told(now) !== said) broken("F14", `it said ${said}, and says ${told(now)}`);
    const then = placeOf(now);
    const { device } = exchange as { device: { gpu: unknown } };
    const { buffer } = placeOf(fields); // of now: memory may have grown
    if (device.gpu !== fields.gpu || then.buffer !== buffer || then.start !== start) {
      broken("F14", "its data or device is another at the second look");
    }
  });
}

function told({ shape, strides, byteOffset, capacity, flags }: Fields): string {
  return JSON.stringify({ shape, strides, byteOffset, capacity, flags });
}

export async function growing(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const { x } = subject;
  const held = await trial.hold(subject);
  const moving = "memory" in held.fields.data;
  if (typeof x.grow !== "function") skip("the result of make has no grow()");
  await held.expect();
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

export async function written(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const turns: [object, Subject["values"], boolean[]][] = [
    [{ writes: true, copy: false }, [...subject.values].reverse(), [true]],
    [{ writes: true, copy: false }, subject.values, []],
    [{ writes: true }, [...subject.values].reverse(), [true]],
  ];
  let wrote = 0;
  for (const [request, values, told] of turns) {
    const held = await trial.attempt(subject, request, "UnsupportedError", "CopyError");
    if (!held || held.fields.flags & COPIED) continue;
    held.flush();
    write(held, subject.kind, values);
    held.release(...told);
    wrote++;
    for await (const again of trial.holdsOf(subject)) {
      again.flush();
      await again.expectNow("O4", values);
    }
  }
  if (wrote === 0) skip("its memory may not be written");
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

/** Whether it is made. */
export async function oneDtype(trial: Trial, kind: Kind): Promise<boolean> {
  const subject = await trial.tryMake(kind);
  if (!subject) return false;
  await (await trial.hold(subject)).expect();
  return true;
}

/** In copies and elsewhere, and of packed elements that end within a byte. */
export async function copiesOf(trial: Trial, kind: Kind): Promise<void> {
  for (const shape of kind.bits < 8 ? [[2, 3], [5]] : [[2, 3]]) {
    const subject = await trial.tryMake(kind, shape);
    if (!subject) continue;
    for await (const held of trial.holdsOf(subject)) await held.expect("S8");
  }
}
