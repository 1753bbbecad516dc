/** The lifetime of memory that a producer hands out, one rule per function. */
import { writeBuffer } from "./device.js";
import { bytesOf, elements, type Fields, overlap, placeOf } from "./fields.js";
import { broken, show, skip } from "./report.js";
import {
  EXCLUSIVE,
  expect,
  expectNow,
  flush,
  type Held,
  letGo,
  type Subject,
  type Trial,
  well,
} from "./trial.js";
import type { BufferLike } from "./types.js";
import { encode, type Kind, same } from "./values.js";

/** Why there are no two holds to test with. */
async function two(trial: Trial, subject: Subject): Promise<[Held, Held]> {
  const first = await trial.hold(subject);
  if (first.fields.flags & EXCLUSIVE) skip("its exchanges are exclusive");
  return [first, await trial.hold(subject)];
}

export async function shapes(trial: Trial): Promise<void> {
  for (const shape of [[], [0, 3], [5], [2, 1, 3]]) {
    const subject = await trial.tryMake(undefined, shape);
    if (!subject) continue;
    await expect(await trial.hold(subject), subject);
    if (shape.includes(0)) trial.seen.add("S9");
  }
}

export async function neighbours(trial: Trial): Promise<void> {
  // Several sizes, padded and not, as a slab allocator may round some of them up.
  const holds: Held[] = [];
  for (const [i, shape] of [trial.shape, [1], trial.shape, [3], [5], [1]].entries()) {
    const subject = await trial.tryMake(undefined, shape, 7 * i);
    if (!subject) continue;
    const own: Held[] = [];
    for (const padTo of [undefined, 16, 256]) {
      const held = await trial.hold(subject, padTo ? { needs: { padTo } } : {});
      for (const other of holds) {
        if (!overlap(held.fields, other.fields)) continue;
        const asked = padTo ? `, where padTo: ${padTo} was asked for` : "";
        broken("S5", `two tensors count the same bytes as theirs${asked}`);
      }
      if (!(held.fields.flags & EXCLUSIVE) || padTo === 256) own.push(held);
      else held.release();
    }
    holds.push(...own);
  }
}

export async function padding(trial: Trial): Promise<unknown> {
  const secrets: Subject[] = [];
  // A pool reuses a buffer for about the same size: there is one of each.
  for (const shape of [[4, 16], [3, 4], [8], [4], [32]]) {
    const secret = await trial.tryMake(undefined, shape, 30);
    if (secret) secrets.push(secret);
  }
  if (secrets.length === 0) secrets.push(await trial.make(30));
  for (const secret of secrets) (await trial.hold(secret)).release();
  for (const secret of secrets) if (!letGo(secret)) secret.x.release = undefined;
  let dirty = 0;
  let padded = 0;
  for (const shape of [[1, 5], [3], [7], [1], [1, 29]]) {
    const subject = await trial.tryMake(undefined, shape);
    if (!subject) continue;
    for (const request of [{}, { needs: { padTo: 64 } }]) {
      const held = await trial.hold(subject, request);
      const bytes = await paddingOf(held.fields);
      held.release();
      padded += bytes.length;
      if (secrets.some((secret) => shows(bytes, secret))) {
        broken("S6", "padding shows a tensor that was released");
      }
      if (bytes.some((byte) => byte !== 0)) dirty++;
    }
  }
  if (padded === 0) skip("there is no padding");
  return dirty ? "padding should be 0, and is not" : undefined;
}

/** Some of the bytes that `capacity` counts behind the highest element. */
async function paddingOf(fields: Fields): Promise<Uint8Array> {
  const end = Math.min(fields.byteOffset + fields.capacity, fields.to + 4096);
  if (fields.strides || end <= fields.to) return new Uint8Array();
  return bytesOf(fields, fields.to, end);
}

/** Whether four bytes in a row are some of another tensor's. */
function shows(bytes: Uint8Array, { kind, values }: Subject): boolean {
  const theirs = encode(kind, values);
  for (let at = 0; at + 4 <= bytes.length; at++) {
    const four = bytes.subarray(at, at + 4);
    // Bytes that are mostly 0 prove nothing.
    if (four.filter((byte) => byte !== 0).length < 2) continue;
    for (let i = 0; i + 4 <= theirs.length; i++) {
      if (same(theirs.subarray(i, i + 4), four)) return true;
    }
  }
  return false;
}

/** Its promise has to outlive the hold. */
export async function noFault(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  if (!held.fields.fault) skip("it has no fault()");
  flush(held);
  await well(held);
  const late = well(held);
  held.release();
  await late;
}

export async function otherTensors(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  await expect(held, subject);
  const other = await trial.make(20);
  await expect(await trial.hold(other), other, "T5");
  await expectNow(held, subject.values, "T5");
}

export async function sharedFlush(trial: Trial): Promise<void> {
  const [a, b] = [await trial.make(), await trial.make(20)];
  const [x, y] = [await trial.hold(a), await trial.hold(b)];
  if (x.fields.flush !== y.fields.flush) skip("exchanges of two tensors have a flush each");
  flush(y);
  await expectNow(x, a.values, "T4");
  await expectNow(y, b.values, "T4");
}

export async function releasedTwice(trial: Trial): Promise<void> {
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

export async function outlives(trial: Trial): Promise<unknown> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  const array = ArrayBuffer.isView(held.fields.data);
  if (!letGo(subject)) return "what make gives has no release()";
  // Tensors that may get the memory if it is free.
  const other = await trial.make(20);
  await expect(await trial.hold(other), other);
  const { data, to } = held.fields;
  if (ArrayBuffer.isView(data) && data.byteLength < to) broken("S3", "data was detached");
  await expect(held, subject, "O1");
  if (array) trial.seen.add("S3");
  return undefined;
}

export async function staysTheSame(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const { exchange, fields } = await trial.hold(subject);
  const before = told(fields);
  const at = placeOf(fields);
  if (!(fields.flags & EXCLUSIVE)) (await trial.hold(subject)).release();
  letGo(subject);
  await trial.hold(await trial.make(20));
  subject.given.push(1); // a producer that keeps using it has reshaped its tensor
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

export async function growing(trial: Trial): Promise<void> {
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

export async function written(trial: Trial): Promise<void> {
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

/** Whether it is made. */
export async function oneDtype(trial: Trial, kind: Kind): Promise<boolean> {
  const subject = await trial.tryMake(kind);
  if (!subject) return false;
  await expect(await trial.hold(subject), subject);
  return true;
}
