import { type DType, laneName, type TypedArray } from "./dtype.js";
import { UnsupportedError } from "./errors.js";

/** Conversions of elements during a copy: those of wasm/convert.h, in JavaScript. */
const PAIRS = new Set([
  "float64 float32",
  "complex128 complex64",
  "float32 float16",
  "float32 bfloat16",
  "float16 float32",
  "bfloat16 float32",
  "int64 int32",
  "uint64 uint32",
]);

/** The name of a dtype's lanes, which are converted one by one. */
const laneOf = ({ name }: DType) => laneName(name);

/** Whether there is a conversion between two dtypes. */
export function canConvert(from: DType, to: DType): boolean {
  const lanes = from.packed >>> 16 === to.packed >>> 16;
  return lanes && PAIRS.has(`${laneOf(from)} ${laneOf(to)}`);
}

/**
 * Throws UnsupportedError unless elements of `from` may become elements of `to`.
 *
 * @param what - names the tensor in the message
 */
export function checkConversion(from: DType, to: DType, what: string): void {
  if (canConvert(from, to)) return;
  throw new UnsupportedError(
    `${what} cannot become ${to.name} on the way: float64, complex128, int64 and uint64 become half ` +
      "as wide, float32 becomes float16 or bfloat16 and back; convert the array itself",
    { given: from.name, needed: to.name },
  );
}

/**
 * Packed elements as another dtype, in a new array.
 *
 * @throws UnsupportedError for other pairs than above, and for an integer that does not fit
 */
export function convertElements(values: TypedArray, from: DType, to: DType, what: string) {
  checkConversion(from, to, what);
  const made = new to.View(Math.ceil((values.length / from.components) * to.components));
  switch (`${laneOf(from)} ${laneOf(to)}`) {
    case "float32 bfloat16":
      toBfloat16(wordsOf(made), values as Float32Array);
      break;
    case "bfloat16 float32":
      fromBfloat16(made as Float32Array, wordsOf(values));
      break;
    case "float32 float16":
      toHalf(wordsOf(made), values as Float32Array);
      break;
    case "float16 float32":
      fromHalf(made as Float32Array, wordsOf(values));
      break;
    case "int64 int32":
    case "uint64 uint32":
      narrow(made as Int32Array, values as BigInt64Array, to, what);
      break;
    default:
      (made as Float32Array).set(values as Float64Array); // rounded to nearest, ties to even
  }
  return made;
}

/** An array's elements of two bytes; a copy where they are not aligned. */
function wordsOf({ buffer, byteOffset, byteLength }: TypedArray): Uint16Array {
  if (byteOffset % 2 === 0) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return new Uint16Array(buffer.slice(byteOffset, byteOffset + byteLength));
}

function bitsOf({ buffer, byteOffset, length }: Float32Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length);
}

/** The upper half, rounded to nearest, ties to even; NaNs keep the upper bits of their payload. */
function toBfloat16(target: Uint16Array, values: Float32Array): void {
  bitsOf(values).forEach((bits, i) => {
    if ((bits & 0x7fffffff) > 0x7f800000)
      target[i] = (bits >>> 16) | ((bits >>> 16) & 0x7f ? 0 : 1);
    else target[i] = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
  });
}

function fromBfloat16(target: Float32Array, halves: Uint16Array): void {
  const bits = bitsOf(target);
  halves.forEach((half, i) => {
    bits[i] = half << 16;
  });
}

/** IEEE 754 binary16, as wasm/convert.c does it: engines differ for NaNs. */
function toHalf(target: Uint16Array, values: Float32Array): void {
  bitsOf(values).forEach((bits, i) => {
    const magnitude = bits & 0x7fffffff;
    let half: number;
    if (magnitude > 0x7f800000) half = 0x7c00 + ((magnitude >>> 13) & 0x3ff || 1);
    else if (magnitude >= 0x47800000) half = 0x7c00;
    // Below 2^-14 the steps are 2^-24, those of floats from 0.5 to 1: adding 0.5 rounds.
    else if (magnitude < 0x38800000) {
      half = (Math.fround(Math.abs(values[i] as number) + 0.5) - 0.5) * 2 ** 24;
    } else half = (magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13;
    target[i] = ((bits >>> 16) & 0x8000) | half;
  });
}

function fromHalf(target: Float32Array, halves: Uint16Array): void {
  const bits = bitsOf(target);
  halves.forEach((half, i) => {
    const magnitude = half & 0x7fff;
    if (magnitude < 0x0400) target[i] = magnitude * 2 ** -24;
    else bits[i] = (magnitude << 13) + (magnitude < 0x7c00 ? 0x38000000 : 0x70000000);
    bits[i] = (bits[i] as number) | ((half & 0x8000) << 16);
  });
}

function narrow(target: Int32Array, values: BigInt64Array, to: DType, what: string): void {
  values.forEach((value, i) => {
    target[i] = Number(value);
    if (BigInt(target[i] as number) === value) return;
    throw new UnsupportedError(
      `element ${i} of ${what}, in row-major order, is ${value}, which ${to.name} cannot hold; move ` +
        "the elements as they are, without dtype",
      { given: value, needed: to.name },
    );
  });
}
