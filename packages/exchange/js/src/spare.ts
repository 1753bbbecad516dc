/** What `capacity` counts besides the elements: padding, but no neighbour (S5, S6). */
import { bytesOf, type Fields, overlap } from "./fields.js";
import { broken, skip } from "./report.js";
import { brief, EXCLUSIVE, type Held, letGo, pause, type Subject, type Trial } from "./trial.js";
import { encode, type Kind, kindOf, same } from "./values.js";

/** The dtype of the other checks, and one of which a word has several elements. */
function kindsOf({ kind, options }: Trial): Kind[] {
  const small = "uint8 int8 int16 uint16 float16".split(" ");
  const name = small.find((each) => options.dtypes?.includes(each) ?? true);
  const other = name && name !== kind.name ? kindOf(name) : undefined;
  return other ? [kind, other] : [kind];
}

/** Requests on which a capacity may depend. */
const asks = (device: unknown): object[] => [
  ...[{}, ...[16, 64, 256].map((padTo) => ({ needs: { padTo } }))],
  ...[{ copy: false }, { writes: true }, { device, needs: { offset: 0, padTo: 16, usage: 128 } }],
];

/** Several sizes, padded and not, as a slab allocator may round some of them up. */
export async function neighbours(trial: Trial): Promise<void> {
  for (const kind of kindsOf(trial)) {
    const holds: Held[] = [];
    for (const [i, shape] of [trial.shape, [1], trial.shape, [3], [5], [1]].entries()) {
      const subject = await trial.tryMake(kind, shape, 7 * i);
      if (!subject) continue;
      const own: Held[] = [];
      for (const request of asks(trial.device)) {
        const held = await trial.attempt(subject, request, "UnsupportedError", "CopyError");
        if (held && holds.some((other) => overlap(held.fields, other.fields))) {
          broken("S5", `two tensors count the same bytes as theirs, asked for ${brief(request)}`);
        }
        if (held && held.fields.flags & EXCLUSIVE) held.release();
        else if (held) own.push(held);
      }
      holds.push(...own);
    }
  }
}

export async function padding(trial: Trial): Promise<unknown> {
  const notes = [];
  for (const kind of kindsOf(trial)) notes.push(await paddingIn(trial, kind));
  if (!notes.includes(true) && !notes.includes(false)) skip("there is no padding");
  return notes.includes(true) ? "padding should be 0, and is not" : undefined;
}

/** Whether padding is dirty; undefined: there is none. */
async function paddingIn(trial: Trial, kind: Kind): Promise<boolean | undefined> {
  const secrets: Subject[] = [];
  // A pool reuses a buffer for about the same size: there is one of each.
  for (const shape of [[4, 16], [3, 4], [8], [4], [32]]) {
    const secret = await trial.tryMake(kind, shape, 30);
    if (secret) secrets.push(secret);
  }
  for (const secret of secrets) for await (const _ of trial.holdsOf(secret));
  for (const secret of secrets) letGo(secret);
  await pause(5); // a pool may reuse memory after a while
  let dirty: boolean | undefined;
  for (const shape of [[1, 5], [3], [7], [1], [1, 29]]) {
    const subject = await trial.tryMake(kind, shape);
    if (!subject) continue;
    for await (const held of trial.holdsOf(subject)) {
      held.flush(); // a pool clears it by then
      const bytes = await paddingOf(held.fields);
      if (secrets.some((secret) => shows(bytes, secret))) {
        broken("S6", "padding shows a tensor that was released");
      }
      if (bytes.length > 0) dirty ||= bytes.some((byte) => byte !== 0);
    }
  }
  return dirty;
}

/** Some of the bytes that `capacity` counts behind the highest element. */
async function paddingOf(fields: Fields): Promise<Uint8Array> {
  const end = Math.min(fields.byteOffset + fields.capacity, fields.to + 4096);
  if (fields.strides || end <= fields.to) return new Uint8Array();
  return bytesOf(fields, fields.to, end);
}

/** Whether some bytes in a row, four or all that there are, are some of another tensor's. */
function shows(bytes: Uint8Array, { kind, values }: Subject): boolean {
  const theirs = encode(kind, values);
  const size = Math.min(4, bytes.length);
  for (let at = 0; at + size <= bytes.length; at++) {
    const some = bytes.subarray(at, at + size);
    // Bytes that are mostly 0 prove nothing.
    if (some.filter((byte) => byte !== 0).length < 2) continue;
    for (let i = 0; i + size <= theirs.length; i++) {
      if (same(theirs.subarray(i, i + size), some)) return true;
    }
  }
  return false;
}
