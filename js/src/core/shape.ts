import { MAX_NDIM } from "./dlpack.js";
import { bytesOf, type DType } from "./dtype.js";
import { tagOf, textOf, UnsupportedError } from "./errors.js";

/**
 * A copy of an array with an item for each axis, of which there are at most 64; throws for anything
 * else. A string has a length too; `shape: 3` and `shape: "3"` are both mistakes.
 */
export function listOf(given: ArrayLike<number>, what: string): number[] {
  const length = typeof given === "object" ? given?.length : undefined;
  if (typeof length !== "number") {
    throw new TypeError(`${what} must be an array of integers, e.g. [2, 3], not ${textOf(given)}`);
  }
  if (!Number.isInteger(length) || length < 0 || length > MAX_NDIM) {
    throw new RangeError(`${what} has ${length} dimensions; the limit is ${MAX_NDIM}`);
  }
  return Array.from({ length }, (_, i) => given[i] as number);
}

/** A checked copy of a shape: at most 64 non-negative integers whose product stays exact. */
export function checkShape(shape: ArrayLike<number>): number[] {
  const dims = listOf(shape, "shape");
  for (const dim of dims) {
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw new RangeError(`shape [${textOf(dims)}]: ${textOf(dim)} is not a non-negative integer`);
    }
  }
  // 16 bytes is the largest element, so the size in bytes is exact as well.
  if (sizeOf(dims) > Number.MAX_SAFE_INTEGER / 16) {
    throw new RangeError(`shape [${dims}] has too many elements`);
  }
  return dims;
}

/** A checked copy of strides; null where they are those of row-major order. */
export function checkStrides(
  shape: readonly number[],
  strides: ArrayLike<number> | undefined,
): number[] | null {
  if (strides === undefined) return null;
  const steps = listOf(strides, "strides");
  if (steps.length !== shape.length || !steps.every(Number.isSafeInteger)) {
    throw new RangeError(
      `strides [${textOf(steps)}] must be ${shape.length} integers, in elements`,
    );
  }
  const usual = rowMajorStrides(shape);
  // Those of axes of length 1 carry no information, nor do those of tensors without elements.
  const even = steps.every((step, i) => step === usual[i] || shape[i] === 1);
  return even || sizeOf(shape) === 0 ? null : steps;
}

/** Whether two shapes have the same extents. */
export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Number of elements; 1 for shape []. */
export function sizeOf(shape: readonly number[]): number {
  let size = 1;
  for (let i = 0; i < shape.length; i++) size *= shape[i] as number;
  return size;
}

/** Strides, in elements, of row-major order without gaps. */
export function rowMajorStrides(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= shape[i] as number;
  }
  return strides;
}

/**
 * The elements that a strided tensor touches, counted from element 0: from `low` (negative where
 * a stride is) to `high`, both included. Not for tensors without elements.
 */
export function extentOf(shape: readonly number[], strides: readonly number[]) {
  let low = 0;
  let high = 0;
  shape.forEach((dim, i) => {
    const reach = (dim - 1) * (strides[i] as number);
    if (reach < 0) low += reach;
    else high += reach;
  });
  return { low, high };
}

/** Position of an element in elements from element 0; negative indices count from the end. */
export function positionOf(
  shape: readonly number[],
  strides: readonly number[],
  index: readonly number[],
): number {
  if (index.length !== shape.length) {
    throw new TypeError(
      `shape [${shape}] needs ${shape.length} indices, not ${index.length}: one number for each axis`,
    );
  }
  let position = 0;
  index.forEach((given, axis) => {
    position += placeOf(given, shape[axis] as number, axis) * (strides[axis] as number);
  });
  return position;
}

/** The place of an index on an axis; a negative one counts from the end. */
export function placeOf(given: number, extent: number, axis: number): number {
  if (!Number.isInteger(given)) {
    const shown = typeof given === "number" ? given : tagOf(given);
    throw new TypeError(`index ${shown} is not an integer`);
  }
  const place = given < 0 ? given + extent : given;
  if (place >= 0 && place < extent) return place;
  throw new RangeError(`index ${given} is out of bounds for axis ${axis} with size ${extent}`);
}

/** The byte range of a tensor's elements, gaps included: its start and length. */
export function spanOf(
  dtype: DType,
  shape: readonly number[],
  strides: readonly number[] | null,
  byteOffset: number,
): { start: number; bytes: number } {
  const size = sizeOf(shape);
  if (strides === null || size === 0) return { start: byteOffset, bytes: bytesOf(dtype, size) };
  const { low, high } = extentOf(shape, strides);
  return { start: byteOffset + low * dtype.step, bytes: (high - low + 1) * dtype.step };
}

/** Elements that share bytes have no strides. */
export function checkSubByte(type: DType, strides: readonly number[] | null, what: string): void {
  if (strides === null || type.step % 1 === 0) return;
  throw new UnsupportedError(
    `${what}: packed elements of less than a byte must be row-major; copy them first`,
  );
}
