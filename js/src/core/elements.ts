import { fromBfloat16, fromHalf } from "./convert.js";
import { classOf, type DType, type TypedArray } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import { extentOf, sizeOf } from "./shape.js";

/** One element of a tensor: complex numbers are [re, im], int64 and uint64 are BigInts. */
export type Element = number | bigint | boolean | [re: number, im: number];

/** The element at `position` (in elements) of `data`, the view of a tensor of this dtype. */
export function readElement(dtype: DType, data: TypedArray, position: number): Element {
  const at = position * dtype.components;
  const value = data[at] as number | bigint;
  switch (dtype.name) {
    case "bool":
      return value !== 0;
    case "complex64":
    case "complex128":
      return [value as number, data[at + 1] as number];
    case "bfloat16":
      return decode(fromBfloat16, (value as number) | ((data[at + 1] as number) << 8));
    case "float16":
      return classOf(data) === "Uint16Array" ? decode(fromHalf, value as number) : value;
    default:
      // Decoded are single integers and floats whose width is the view's.
      if (
        (dtype.packed & 255) >= 5 ||
        dtype.packed >>> 8 !== 256 + 8 * dtype.View.BYTES_PER_ELEMENT
      ) {
        throw new UnsupportedError(
          `at() cannot decode ${dtype.name}: it is carried as bytes; read tensor.data`,
          { given: dtype.name },
        );
      }
      return value;
  }
}

function decode(convert: typeof fromHalf, pattern: number): number {
  const made = new Float32Array(1);
  convert(made, Uint16Array.of(pattern));
  return made[0] as number;
}

/**
 * Copies strided elements, in row-major order, as many as `target` has room for. Whole bytes alone:
 * packed sub-byte elements have no strides.
 *
 * @param source - begins with the lowest element
 * @param step - bytes of an element
 * @param first - position of the first one to copy
 */
export function gather(
  target: Uint8Array,
  source: Uint8Array,
  shape: readonly number[],
  strides: readonly number[],
  step: number,
  first = 0,
): void {
  const index = shape.map(() => 0);
  let from = -extentOf(shape, strides).low * step;
  for (let axis = shape.length - 1, rest = first; rest > 0; axis--) {
    const dim = shape[axis] as number;
    index[axis] = rest % dim;
    from += (rest % dim) * (strides[axis] as number) * step;
    rest = Math.floor(rest / dim);
  }
  const end = Math.min(target.length, (sizeOf(shape) - first) * step);
  for (let to = 0; to < end; to += step) {
    for (let byte = 0; byte < step; byte++) target[to + byte] = source[from + byte] as number;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const stride = (strides[axis] as number) * step;
      from += stride;
      index[axis] = (index[axis] as number) + 1;
      if ((index[axis] as number) < (shape[axis] as number)) break;
      from -= stride * (shape[axis] as number);
      index[axis] = 0;
    }
  }
}

/**
 * Copies packed elements of `count` bytes, not whole where they end within one: there only their own
 * bits are written, as the others may be a neighbour's.
 */
export function putBytes(target: Uint8Array, source: Uint8Array, count: number): void {
  const whole = Math.floor(count);
  const mask = (1 << ((count - whole) * 8)) - 1;
  if (mask === 0) {
    target.set(source);
    return;
  }
  const last = source[whole] as number; // read first: the two may overlap
  target.set(source.subarray(0, whole));
  target[whole] = ((target[whole] as number) & ~mask) | (last & mask);
}
