/** Frames as bytes: WIRE.md describes them. Everything foreign is checked here. */
import type { CopyOf } from "dlpack-web/core";
import { type DType, factsOf, readHeader, tagOfDType, writeHeader } from "dlpack-web/internal";
import { malformed, sizeOf } from "../common.js";

/** The version of the wire that this library speaks. */
export const WIRE = 1;
/** Bytes of a header, and characters of a tensor's name, at most. */
const [MOST_HEADER, MOST_NAME] = [1 << 16, 1000];
/** Bytes of a piece's elements: the least and the most that an endpoint may choose. */
export const [LEAST_PIECE, MOST_PIECE] = [1 << 16, 4 << 20];

const NUMBER = /^(?:0|[1-9]\d{0,15})$/;
const SESSION = /^[0-9a-f]{16}$/;
const WHAT = "the frame";

/** Bytes with an `ArrayBuffer` of their own, also in TypeScript before 5.7. */
export type Bytes = CopyOf<"uint8">;

/** Bytes `first` to `last` of a tensor; version `version` writes bytes `begin` to `end`. */
export interface Piece {
  readonly op: "piece";
  readonly name: string;
  readonly type: DType;
  readonly shape: readonly number[];
  readonly id: number;
  readonly version: number;
  readonly begin: number;
  readonly end: number;
  readonly first: number;
  readonly last: number;
}

/** What two endpoints tell each other besides pieces. */
export type Control =
  | { readonly op: "hello"; readonly window: number; readonly piece: number }
  | {
      readonly op: "ack";
      readonly id: number;
      readonly version: number;
      readonly first: number;
      readonly last: number;
    }
  | {
      readonly op: "refuse";
      readonly id: number;
      readonly version: number;
      readonly message: string;
    }
  | { readonly op: "free"; readonly id: number; readonly version: number };

/** Sessions of the endpoint that sent a frame, and of the one it is for ("": unknown so far). */
export interface Route {
  readonly from: string;
  readonly to: string;
}

/** A frame of either kind, with its elements. */
export type Frame = (Piece | Control) & Route & { readonly payload: Uint8Array };

/** The header of a frame; the elements of a piece follow it. */
export function encode(frame: (Piece | Control) & Route): Bytes {
  const { op, from, to, ...fields } = frame;
  const metadata: Record<string, string> = { wire: `${WIRE}`, from, to };
  if (frame.op !== "piece") {
    for (const [key, value] of Object.entries(fields)) metadata[key] = `${value}`;
    return writeHeader([], { ...metadata, op }, WHAT);
  }
  const { name, type, shape, id, version, begin, end, first, last } = frame;
  for (const [key, value] of Object.entries({ id, version, begin, end }))
    metadata[key] = `${value}`;
  const dtype = tagOfDType(type, WHAT);
  const entry = { dtype, shape, data_offsets: [first, last] };
  return writeHeader([[name, entry]], metadata, WHAT);
}

/**
 * The frame in these bytes.
 *
 * @param payload - the elements, if the channel carries them beside the header
 * @throws UnsupportedError for anything else than a whole frame of this version
 */
export function decode(bytes: Uint8Array, payload?: Uint8Array): Frame {
  if (bytes.length < 8) throw malformed(WHAT, `it has ${bytes.length} bytes, less than its length`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, 8);
  const length = view.getUint32(4, true) * 2 ** 32 + view.getUint32(0, true);
  if (length < 2 || length > MOST_HEADER || length > bytes.length - 8) {
    throw malformed(WHAT, `a header of ${length} bytes, in a frame of ${bytes.length}`, length);
  }
  const { found, metadata } = readHeader(bytes.subarray(8, 8 + length), WHAT);
  const { wire, from = "", to = "", op = "piece" } = metadata;
  if (wire !== `${WIRE}`) {
    const given = `version ${cut(wire ?? "none")} of the wire`;
    throw malformed(WHAT, `${given}, and this library speaks ${WIRE}: update the older side`, wire);
  }
  if (!SESSION.test(from) || !(to === "" || SESSION.test(to))) {
    throw malformed(WHAT, "from and to are sessions of 16 hexadecimal digits");
  }
  const inside = bytes.subarray(8 + length);
  if (payload !== undefined && inside.length > 0) {
    throw malformed(WHAT, "elements in the header's buffer and beside it");
  }
  const elements = payload ?? inside;
  const frame = op === "piece" ? pieceOf(found, metadata) : controlOf(op, metadata);
  const needed = frame.op === "piece" ? frame.last - frame.first : 0;
  if (elements.length !== needed || (frame.op !== "piece" && found.length > 0)) {
    throw malformed(WHAT, `${op} with ${elements.length} bytes of elements, not ${needed}`);
  }
  return { ...frame, from, to, payload: elements };
}

/** Throws for a name that no frame can have. */
export function checkName(name: string): void {
  const isNamed = typeof name === "string" && name !== "__metadata__" && cut(name) === name;
  if (!isNamed)
    throw new TypeError(`a tensor's name is a string of at most ${MOST_NAME} characters`);
  if (!/\p{Surrogate}/u.test(name)) return;
  const shown = JSON.stringify(name.slice(0, 100));
  throw malformed(WHAT, `${shown} has half of a surrogate pair, which is not a character`, name);
}

/** Bytes of contiguous elements. */
export function nbytesOf(type: DType, shape: readonly number[]): number {
  return Math.ceil(sizeOf(shape) * type.step);
}

/** Its first characters, which may be two code units each. */
export function cut(text: string, most = MOST_NAME): string {
  return text.length > most ? [...text.slice(0, 2 * most)].slice(0, most).join("") : text;
}

/**
 * One message of a frame.
 *
 * @param header - what `send` got
 * @param payload - the elements
 */
export function joined(header: Uint8Array, payload: Uint8Array): Bytes {
  const whole = new Uint8Array(header.length + payload.length);
  whole.set(header);
  whole.set(payload, header.length);
  return whole;
}

function pieceOf(found: [string, unknown][], metadata: Record<string, string>): Piece {
  const [only] = found;
  if (only === undefined || found.length > 1) {
    throw malformed(WHAT, `a piece is of one tensor, and its header lists ${found.length}`);
  }
  const [name, entry] = only;
  const which = `${WHAT}: tensor "${cut(name)}"`;
  if (cut(name) !== name) throw malformed(which, `its name has ${[...name].length} characters`);
  const { dtype, type, shape, begin: first, end: last } = factsOf(entry, which);
  if (typeof type === "string") {
    throw malformed(which, `dtype ${dtype} is not supported`, dtype);
  }
  const total = nbytesOf(type, shape);
  const [begin, end] = [numberIn(metadata, "begin"), numberIn(metadata, "end")];
  const isOrdered = begin <= first && first <= last && last <= end && end <= total;
  if (!isOrdered || [begin, end, first, last].some((each) => each % type.step !== 0)) {
    throw malformed(
      which,
      `bytes ${first} to ${last} of a write of ${begin} to ${end} are not whole elements in ` +
        `order, of ${total} bytes`,
    );
  }
  if (first === last && begin !== end) throw malformed(which, "a piece without elements");
  const [id, version] = [numberIn(metadata, "id"), numberIn(metadata, "version", 1)];
  return { op: "piece", name, type, shape, id, version, begin, end, first, last };
}

function controlOf(op: string, metadata: Record<string, string>): Control {
  const number = (key: string, least = 0) => numberIn(metadata, key, least);
  if (op === "hello") return { op, window: number("window"), piece: number("piece", LEAST_PIECE) };
  const [id, version] = [number("id"), number("version", 1)];
  if (op === "ack") return { op, id, version, first: number("first"), last: number("last") };
  if (op === "refuse") {
    const { message = "" } = metadata;
    return { op, id, version, message: cut(message) };
  }
  if (op === "free") return { op, id, version };
  throw malformed(WHAT, `op "${op.slice(0, 100)}" is not piece, hello, ack, refuse or free`, op);
}

function numberIn(metadata: Record<string, string>, key: string, least = 0): number {
  const text = metadata[key];
  const value = Number(text);
  if (text !== undefined && NUMBER.test(text) && Number.isSafeInteger(value) && value >= least) {
    return value;
  }
  const shown = text === undefined ? "missing" : `"${text.slice(0, 100)}"`;
  throw malformed(WHAT, `${key} is ${shown}, and not an integer from ${least} to 2^53 - 1`, text);
}
