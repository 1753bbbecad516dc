/** DLPack's dtypes: values that each can hold, and how they are stored (S8). */
import { KINDS } from "./generated.js";

type Value = number | bigint;

/** DLPack's codes of complex numbers: complex and bcomplex. */
const COMPLEX = [5, 18];

/** The dtypes of one lane. Most rules are tested with the first one that a library has. */
export const DTYPES: readonly string[] = [
  ...new Set(["float32", "int32", "uint8", "float64", ...Object.keys(KINDS)]),
];

/** A dtype. */
export interface Kind {
  readonly name: string;
  readonly code: number;
  readonly bits: number;
  /** Components of an element: 2 if it is complex. */
  readonly parts: number;
  /** Bits of a component. */
  readonly width: number;
  /** Bits of exponent and mantissa, and the exponent's bias, of a float below 32 bits. */
  readonly float?: readonly number[] | undefined;
}

/** undefined for an unknown name. */
export function kindOf(name: string): Kind | undefined {
  if (!DTYPES.includes(name)) return undefined;
  const [code, bits, ...float] = KINDS[name] as [number, number, ...number[]];
  const parts = COMPLEX.includes(code) ? 2 : 1;
  return { name, code, bits, parts, width: bits / parts, float: float.length ? float : undefined };
}

/** Components that the dtype represents exactly, all different if it has as many values. */
export function valuesFor(kind: Kind, size: number, start = 0): Value[] {
  const { code, width, parts } = kind;
  const few = poolOf(kind);
  // High and low bits, which a library may lose; numbers represent those of 64 bits exactly.
  const spread = width === 64 ? 2 ** 36 + 1 : code < 2 ? 0x9e3779b1 : width === 32 ? 4097 : 1;
  const pick = (i: number): Value => {
    const value = few?.[i % few.length] ?? spread * (i % 2 && code !== 1 ? -i - 1 : i + 1);
    if (code > 1) return value;
    const whole = (code ? BigInt.asUintN : BigInt.asIntN)(width, BigInt(value));
    return width === 64 ? whole : Number(whole);
  };
  return Array.from({ length: size * parts }, (_, i) => pick(i + start));
}

/** What a dtype has of which few values are exact; undefined for one that can count. */
function poolOf({ name, code, width, float }: Kind): number[] | undefined {
  if (name === "bool") return [1, 0, 1, 1, 0];
  if (float?.[1] === 0) return [1, 2, 4, 8];
  if (float && width <= 8) return [1, -2, 3, -4, 6];
  if (width === 1) return [code ? 1 : -1, 0];
  if (width === 2) return code ? [1, 2, 3] : [1, -2, -1];
  if (width === 4) return code ? [1, 14, 3, 8, 5, 12, 7] : [1, -2, 3, -8, 5, -4, 7];
  return undefined;
}

/** The component whose lowest bit is at `bit`. */
export function get(view: DataView, { code, width, float }: Kind, bit: number): Value {
  const at = Math.floor(bit / 8);
  if (width === 64) {
    if (code > 1) return view.getFloat64(at, true);
    return code ? view.getBigUint64(at, true) : view.getBigInt64(at, true);
  }
  if (width === 32) {
    if (code > 1) return view.getFloat32(at, true);
    return code ? view.getUint32(at, true) : view.getInt32(at, true);
  }
  const raw = (bytesAt(view, at) >> (bit & 7)) & ((1 << width) - 1);
  if (!float) return code === 0 && raw >> (width - 1) ? raw - 2 ** width : raw;
  const [exponents, mantissas, bias] = float as [number, number, number];
  const exponent = (raw >> mantissas) & (2 ** exponents - 1);
  const mantissa = (raw & (2 ** mantissas - 1)) / 2 ** mantissas;
  const sign = exponents + mantissas < width ? raw >> (exponents + mantissas) : 0;
  const size =
    exponent || !mantissas ? (1 + mantissa) * 2 ** (exponent - bias) : mantissa * 2 ** (1 - bias);
  return sign ? -size : size;
}

/** Stores a component; floats below 32 bits must be 1 or larger, but for their sign. */
export function set(view: DataView, kind: Kind, bit: number, value: Value): void {
  const { code, width, float } = kind;
  const at = Math.floor(bit / 8);
  if (width === 64) {
    if (code > 1) view.setFloat64(at, Number(value), true);
    else view.setBigInt64(at, BigInt(value), true);
    return;
  }
  if (width === 32) {
    if (code > 1) view.setFloat32(at, Number(value), true);
    else view.setInt32(at, Number(value), true);
    return;
  }
  let raw = Number(value);
  if (float) {
    const [exponents, mantissas, bias] = float as [number, number, number];
    const exponent = Math.floor(Math.log2(Math.abs(raw)));
    const sign = raw < 0 ? 2 ** (exponents + mantissas) : 0;
    raw = sign + (exponent + bias + Math.abs(raw) / 2 ** exponent - 1) * 2 ** mantissas;
  }
  const mask = ((1 << width) - 1) << (bit & 7);
  const bits = (bytesAt(view, at) & ~mask) | ((raw << (bit & 7)) & mask);
  view.setUint8(at, bits & 255);
  if (at + 1 < view.byteLength) view.setUint8(at + 1, bits >> 8);
}

function bytesAt(view: DataView, at: number): number {
  return view.getUint8(at) | (at + 1 < view.byteLength ? view.getUint8(at + 1) << 8 : 0);
}

/** Row-major without gaps, with `step` bits for a component. */
export function encode(
  kind: Kind,
  values: readonly Value[],
  step = kind.width,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Math.ceil((values.length * step) / 8));
  const view = new DataView(bytes.buffer);
  values.forEach((value, i) => {
    set(view, kind, i * step, value);
  });
  return bytes;
}

/** Where the elements are, in elements from element 0, in row-major order. */
export function positions(shape: readonly number[], strides: readonly number[] | null): number[] {
  const steps = strides ?? shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));
  return shape.reduce(
    (found, dim, axis) =>
      found.flatMap((p) => Array.from({ length: dim }, (_, i) => p + i * (steps[axis] as number))),
    [0],
  );
}

export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((size, dim) => size * dim, 1);
}

/** Whether both have the same numbers; bigints are numbers here. */
export function same(got: ArrayLike<unknown>, wanted: ArrayLike<unknown>): boolean {
  if (got.length !== wanted.length) return false;
  for (let i = 0; i < wanted.length; i++) {
    if (typeof got[i] === "symbol" || Number(got[i]) !== Number(wanted[i])) return false;
  }
  return true;
}
