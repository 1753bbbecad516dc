/**
 * The header of a safetensors file: 8 bytes of length, then JSON. The checks are those of its own
 * reader: tensors are contiguous, without holes, up to the end of the file.
 */
import type { CopyOf } from "../core/dtype.js";
import { cut } from "../core/errors.js";
import { sizeOf } from "../core/shape.js";
import { bitsOf, dtypeOfTag, tagOfDType, whyLacking } from "./dtypes.js";
import { type Described, type Entry, malformed, nbytesOf, shapeOf, textIn } from "./entry.js";
import { checkText, strictJSON } from "./json.js";

/** The limit of its own reader for a header, in bytes. */
const MAX_HEADER = 100_000_000;

/** Bytes of the header, from the first 8 of the file. */
export function safetensorsLength(head: Uint8Array, what: string): number {
  const view = new DataView(head.buffer, head.byteOffset, 8);
  const length = Number(view.getBigUint64(0, true));
  if (length >= 2 && length <= MAX_HEADER) return length;
  throw malformed(what, `a header of ${length} bytes; safetensors has 2 to ${MAX_HEADER}`, length);
}

/** Whether a file may be one: checks the length of the header, and its first brace. */
export function looksLikeSafetensors(head: Uint8Array): boolean {
  if (head.length < 9 || head[8] !== 0x7b) return false;
  return head[4] === 0 && head[5] === 0 && head[6] === 0 && head[7] === 0;
}

/** The tensors in a header, in the order of their data. */
export function parseSafetensors(
  header: Uint8Array,
  what: string,
): { entries: Entry[]; metadata: Record<string, string>; end: number } {
  const origin = 8 + header.length;
  const { found, metadata } = readHeader(header, what);
  const entries = found.map(([name, facts]) => entryOf(name, facts, origin, what));
  entries.sort((a, b) => a.start - b.start || a.nbytes - b.nbytes);
  let end = origin;
  for (const { name, start, nbytes } of entries) {
    if (start !== end) {
      const how = start < end ? "overlaps the tensor before it" : "leaves a hole before it";
      throw malformed(what, `tensor "${cut(name)}" ${how}, at byte ${start - origin}`);
    }
    end = start + nbytes;
  }
  return { entries, metadata, end };
}

/** What a header says, unchecked but for its form: of each name, and the metadata. */
export function readHeader(
  header: Uint8Array,
  what: string,
): { found: [string, unknown][]; metadata: Record<string, string> } {
  const text = textIn(header, what, "UTF-8");
  if (text[0] !== "{") throw malformed(what, 'its header does not begin with "{"');
  let metadata: Record<string, string> = {};
  const found: [string, unknown][] = [];
  for (const [name, facts] of strictJSON(text, what)) {
    if (name === "__metadata__") metadata = metadataOf(facts, what);
    else found.push([name, facts]);
  }
  return { found, metadata };
}

function metadataOf(given: unknown, what: string): Record<string, string> {
  if (given === null) return {}; // as safetensors' own reader does
  const isPlain = typeof given === "object" && !Array.isArray(given);
  const entries = isPlain ? Object.entries(given) : [];
  if (!isPlain || entries.some(([, value]) => typeof value !== "string")) {
    throw malformed(what, "__metadata__ must be an object of strings, or null");
  }
  return Object.fromEntries(entries);
}

function entryOf(name: string, facts: unknown, origin: number, what: string): Entry {
  const which = `${what}: tensor "${cut(name)}"`;
  const { dtype, type, shape, begin, end } = factsOf(facts, which);
  const described = { type, shape, columns: false };
  const bits = bitsOf(type);
  const nbytes = bits === undefined ? end - begin : (sizeOf(described.shape) * bits) / 8;
  if (nbytes % 1 !== 0) throw malformed(which, `shape [${shape}] of ${dtype} ends within a byte`);
  if (end - begin !== nbytes) {
    throw malformed(
      which,
      `shape [${shape}] of ${dtype} takes ${nbytes} bytes, data_offsets give it ${end - begin}`,
    );
  }
  const why = typeof type === "string" ? whyLacking(type) : undefined;
  return { name, ...described, start: origin + begin, nbytes, why };
}

/** What a header says of one tensor; whether the offsets fit the shape is not checked. */
export function factsOf(facts: unknown, which: string) {
  const { dtype, shape, data_offsets: offsets, ...more } = Object(facts) as Record<string, unknown>;
  if (typeof dtype !== "string" || !Array.isArray(shape) || !isPair(offsets)) {
    throw malformed(which, "dtype, shape and data_offsets [begin, end] are needed");
  }
  const strange = Object.keys(more);
  const named = strange.slice(0, 4).map((key) => cut(key, 50));
  if (strange.length > 0) throw malformed(which, `unknown keys: ${named.join(", ")}`);
  const type = dtypeOfTag(dtype, which);
  const [begin, end] = offsets;
  return { dtype, type, shape: shapeOf(shape, which), begin, end };
}

function isPair(given: unknown): given is [number, number] {
  if (!Array.isArray(given) || given.length !== 2) return false;
  const [begin, end] = given as [unknown, unknown];
  // At most the size of a file: sums stay exact.
  const fits = (n: unknown) => Number.isSafeInteger(n) && (n as number) <= 2 ** 52;
  return fits(begin) && fits(end) && (begin as number) >= 0 && (begin as number) <= (end as number);
}

/** A header for tensors in that order, padded to a multiple of 8. */
export function safetensorsHeader(
  tensors: readonly (Described & { name: string })[],
  metadata: Readonly<Record<string, string>>,
  what: string,
): Uint8Array {
  for (const text of [...tensors.map(({ name }) => name), ...Object.entries(metadata).flat()]) {
    checkText(text, what);
  }
  const facts: [string, unknown][] = [];
  let at = 0;
  for (const { name, type, shape } of tensors) {
    if (name === "__metadata__") throw malformed(what, "a tensor cannot be called __metadata__");
    const end = at + nbytesOf({ type, shape });
    const dtype = tagOfDType(type, `${what}: tensor "${cut(name)}"`);
    facts.push([name, { dtype, shape, data_offsets: [at, end] }]);
    at = end;
  }
  return writeHeader(facts, metadata, what);
}

/** The length and the JSON of a header, padded to a multiple of 8. */
export function writeHeader(
  entries: readonly [string, unknown][],
  metadata: Readonly<Record<string, string>>,
  what: string,
): CopyOf<"uint8"> {
  const facts = [...entries];
  if (Object.keys(metadata).length > 0) facts.unshift(["__metadata__", metadata]);
  // Not JSON.stringify of an object, which would sort numeric names.
  const pairs = facts.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  const json = new TextEncoder().encode(`{${pairs.join(",")}}`);
  const length = Math.ceil(json.length / 8) * 8;
  if (length > MAX_HEADER) throw malformed(what, `a header of ${length} bytes is too large`);
  const bytes = new Uint8Array(8 + length).fill(0x20, 8);
  new DataView(bytes.buffer).setUint32(0, length, true);
  bytes.set(json, 8);
  return bytes;
}
