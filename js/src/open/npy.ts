/**
 * The header of a `.npy` file (NumPy's format 1.0 to 3.0): magic, version, length, and a Python
 * literal. Exactly what NumPy writes is accepted; nothing is evaluated.
 */

import type { DType } from "../core/dtype.js";
import { cut } from "../core/errors.js";
import { descrOf } from "./dtypes.js";
import { type Described, malformed, shapeOf, textIn } from "./entry.js";

/** The first six bytes. */
export const NPY_MAGIC: readonly number[] = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** NumPy's limit; it writes less than 200 bytes, and less than 2000 for 64 dimensions. */
const MAX_HEADER = 10_000;

/** Bytes before the header itself, from the first ten of the file. */
export function npyPreamble(head: Uint8Array, what: string) {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const [major, minor] = [view.getUint8(6), view.getUint8(7)];
  if (major < 1 || major > 3 || minor !== 0) {
    throw malformed(what, `version ${major}.${minor} of .npy is not 1.0, 2.0 or 3.0`);
  }
  const header = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (header > MAX_HEADER) {
    throw malformed(what, `a header of ${header} bytes; no more than ${MAX_HEADER} are read`);
  }
  return { major, before: major === 1 ? 10 : 12, header };
}

/** What a header says; its dtype is in the file's words: as a literal if it is a list. */
export interface NpyHeader extends Omit<Described, "type"> {
  readonly descr: string;
}

/** The header of a file of that version. */
export function parseNpy(header: Uint8Array, major: number, what: string): NpyHeader {
  const text = textIn(header, what, "text");
  const found = dictOf(text, major, what);
  const { descr, fortran_order: columns, shape } = found;
  if (typeof descr !== "string" || typeof columns !== "boolean" || !Array.isArray(shape)) {
    throw malformed(what, `its header lacks descr, fortran_order or shape: ${shown(text)}`);
  }
  const dims = shapeOf(shape, what);
  return { descr, shape: dims, columns: columns && dims.length > 1 };
}

type Value = string | boolean | number[];

// NumPy's output, plus blanks where Python allows them, which are fewer than those of \s. A list
// is a structured dtype. Python's integers have no leading zeros; "2L" is Python 2's.
const BLANKS = "[ \\t\\n\\f\\r]*";
const KEY = "descr|fortran_order|shape";
const INTEGER = `-?(?:0|[1-9][0-9]*)L?${BLANKS}`;
const TUPLE = `\\((?:${BLANKS}${INTEGER},)*${BLANKS}(?:${INTEGER})?\\)`;
const VALUE = `'([^'"\\\\]*)'|"([^'"\\\\]*)"|(True|False)|(${TUPLE})|(\\[.*\\])`;
const PAIR = new RegExp(
  `${BLANKS}(?:'(${KEY})'|"(${KEY})")${BLANKS}:${BLANKS}(?:${VALUE})${BLANKS}`,
  "sy",
);
const CLOSED = new RegExp(`^${BLANKS}\\}[ \\t]*[\\r\\n]*$`);

function dictOf(text: string, major: number, what: string): Record<string, Value> {
  const found: Record<string, Value> = {};
  const wrong = () => malformed(what, `its header is not NumPy's: ${shown(text)}`);
  if (text[0] !== "{") throw wrong();
  PAIR.lastIndex = 1;
  for (let at = 1; ; at = PAIR.lastIndex) {
    PAIR.lastIndex = at;
    const match = PAIR.exec(text);
    if (match === null) {
      if (CLOSED.test(text.slice(at)) && Object.keys(found).length === 3) return found;
      throw wrong();
    }
    const [, one, two, single, double, truth, tuple, list] = match;
    const key = (one ?? two) as string;
    if (Object.hasOwn(found, key)) throw wrong();
    if (list !== undefined && key !== "descr") {
      throw malformed(what, `its ${key} is a list, as structures have one for descr`);
    }
    if (tuple?.includes("L") && major > 2) throw wrong(); // Python 2 had no version 3
    if (tuple !== undefined) found[key] = tupleOf(tuple, wrong);
    else if (truth !== undefined) found[key] = truth === "True";
    else found[key] = (single ?? double ?? list) as string;
    if (text[PAIR.lastIndex] === ",") PAIR.lastIndex++;
    else if (text[PAIR.lastIndex] !== "}") throw wrong();
  }
}

/** "(3, 4)"; "(3)" is a number in Python, and no tuple. */
function tupleOf(text: string, wrong: () => Error): number[] {
  const inside = text.slice(1, -1).trim();
  if (inside === "") return [];
  if (!inside.includes(",")) throw wrong();
  return inside
    .replace(/,$/, "")
    .split(",")
    .map((part) => Number(part.trim().replace("L", "")) + 0); // and no -0
}

function shown(text: string): string {
  return cut(JSON.stringify(text.trim().slice(0, 200)), 200);
}

/** A header as NumPy writes it: the elements after it begin at a multiple of 64. */
export function npyHeader({ type, shape, columns }: Described, what: string): Uint8Array {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const order = columns ? "True" : "False";
  const dict = `{'descr': '${descrOf(type as DType, what)}', 'fortran_order': ${order}, 'shape': (${sizes}), }`;
  const padding = 63 - ((10 + dict.length) % 64);
  const length = dict.length + padding + 1;
  const bytes = new Uint8Array(10 + length).fill(0x20);
  bytes.set([...NPY_MAGIC, 1, 0, length & 255, length >> 8]);
  bytes.set(new TextEncoder().encode(dict), 10);
  bytes[bytes.length - 1] = 0x0a;
  return bytes;
}
