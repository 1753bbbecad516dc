/** DLPack's dtypes: values that each can hold, and how they are stored (S8). */

type Value = number | bigint;

/** Their codes are 7 and up, in this order. */
const SMALL =
  "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 " +
  "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn";
const CODES: Record<string, number> = {
  int: 0,
  uint: 1,
  float: 2,
  bfloat: 4,
  complex: 5,
  bcomplex: 18,
};

/** The dtypes of DLPack 1.3, and bcomplex32 of its main branch, of one lane. */
export const DTYPES: readonly string[] = [
  "float32 int32 uint8 float64 float16 bfloat16 int8 int16 int64 uint16 uint32 uint64 bool",
  `complex32 complex64 complex128 bcomplex32 int1 int2 int4 uint1 uint2 uint4 ${SMALL}`,
].flatMap((names) => names.split(" "));

/** A dtype, as its name says. */
export interface Kind {
  readonly name: string;
  readonly code: number;
  readonly bits: number;
  /** Components of an element: 2 if it is complex. */
  readonly parts: number;
  /** Bits of a component. */
  readonly width: number;
  /** Bits of exponent and mantissa, and the exponent's bias, of a float below 32 bits. */
  readonly float?: readonly [exponent: number, mantissa: number, bias: number] | undefined;
}

/** undefined for an unknown name. */
export function kindOf(name: string): Kind | undefined {
  if (!DTYPES.includes(name)) return undefined;
  if (name === "bool") return { name, code: 6, bits: 8, parts: 1, width: 8 };
  const small = /_e(\d)m(\d)(b11)?(?:fn)?(uz)?/.exec(name);
  const bits = Number(/\d+/.exec(name)?.[0]);
  if (small) {
    const [exponent, mantissa] = [Number(small[1]), Number(small[2])];
    const half = 2 ** (exponent - 1);
    const bias = small[3] ? 11 : small[4] ? half : half - 1;
    const code = 7 + SMALL.split(" ").indexOf(name);
    return { name, code, bits, parts: 1, width: bits, float: [exponent, mantissa, bias] };
  }
  const code = CODES[name.replace(/\d+/, "")] as number;
  const parts = code === 5 || code === 18 ? 2 : 1;
  const width = bits / parts;
  const float = code === 4 || code === 18 ? ([8, 7, 127] as const) : ([5, 10, 15] as const);
  return { name, code, bits, parts, width, float: code > 1 && width === 16 ? float : undefined };
}

/** Components that the dtype represents exactly, all different if it has as many values. */
export function valuesFor(kind: Kind, size: number, start = 0): Value[] {
  const { code, width, parts } = kind;
  const few = poolOf(kind);
  const pick = (i: number) => few?.[i % few.length] ?? (i % 2 && code !== 1 ? -i - 1 : i + 1);
  const big = width === 64 && code < 2;
  return Array.from({ length: size * parts }, (_, i) =>
    big ? BigInt(pick(i + start)) : pick(i + start),
  );
}

/** What a dtype has of which few values are exact; undefined for one that can count. */
function poolOf({ name, code, width, float }: Kind): number[] | undefined {
  if (name === "bool") return [1, 0, 1, 1, 0];
  if (name === "float8_e8m0fnu") return [1, 2, 4, 8];
  if (float && width <= 8) return [1, 2, 3, 4, 6];
  if (width === 1) return [code ? 1 : -1, 0];
  if (width === 2) return code ? [1, 2, 3] : [1, -2, -1];
  return width === 4 ? [1, 2, 3, 4, 5, 6, 7] : undefined;
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
  const [exponents, mantissas, bias] = float;
  const exponent = (raw >> mantissas) & (2 ** exponents - 1);
  const mantissa = (raw & (2 ** mantissas - 1)) / 2 ** mantissas;
  const sign = exponents < 8 - mantissas || width > 8 ? raw >> (exponents + mantissas) : 0;
  const size =
    exponent || code === 14 ? (1 + mantissa) * 2 ** (exponent - bias) : mantissa * 2 ** (1 - bias);
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
    const [exponents, mantissas, bias] = float;
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

/** Row-major without gaps. */
export function encode(kind: Kind, values: readonly Value[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Math.ceil((values.length * kind.width) / 8));
  const view = new DataView(bytes.buffer);
  values.forEach((value, i) => {
    set(view, kind, i * kind.width, value);
  });
  return bytes;
}

/** Where the elements are, in elements from element 0, in row-major order. */
export function positions(shape: readonly number[], strides: readonly number[] | null): number[] {
  const steps = strides ?? rowMajor(shape);
  return shape.reduce(
    (found, dim, axis) =>
      found.flatMap((p) => Array.from({ length: dim }, (_, i) => p + i * (steps[axis] as number))),
    [0],
  );
}

function rowMajor(shape: readonly number[]): number[] {
  return shape.map((_, axis) => shape.slice(axis + 1).reduce((size, dim) => size * dim, 1));
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
