import { UnsupportedError } from "./errors.js";
import { listOf, placeOf, rowMajorStrides, sizeOf } from "./shape.js";

/** Strides and offset of a view, in elements of the whole. */
export interface Layout {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  /** Of element 0, from element 0 of the whole. */
  readonly offset: number;
}

/**
 * One axis of `tensor.slice()`: a number picks one position (the axis goes), [start, stop, step]
 * a range as in Python (null or left out: to the end), null all of it.
 */
export type Range =
  | number
  | null
  | readonly [start?: number | null, stop?: number | null, step?: number | null];

/** The same elements in the same order; throws UnsupportedError if a copy is needed. */
export function reshape(whole: Layout, wanted: ArrayLike<number>): Layout {
  const size = sizeOf(whole.shape);
  const shape = complete(listOf(wanted, "shape"), size);
  if (size === 0) return { shape, strides: rowMajorStrides(shape), offset: 0 };
  const strides = regroup(whole, shape);
  if (strides) return { shape, strides, offset: 0 };
  throw new UnsupportedError(
    `cannot view shape [${whole.shape}] with strides [${whole.strides}] as [${shape}]: the strides ` +
      "do not allow a view; copy, for example with contiguous().reshape(…)",
  );
}

function complete(wanted: number[], size: number): number[] {
  const holes = wanted.filter((extent) => extent === -1).length;
  const rest = sizeOf(wanted.filter((extent) => extent !== -1));
  const shape = wanted.map((extent) => {
    if (extent !== -1 || holes !== 1) return extent;
    return rest > 0 ? Math.floor(size / rest) : 0;
  });
  if (shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    if (sizeOf(shape) === size) return shape;
  }
  throw new RangeError(`cannot view ${size} elements as shape [${wanted}]`);
}

/** Strides of `shape`, which has as many elements, and some; null: there are none. */
function regroup({ shape: old, strides: steps }: Layout, shape: readonly number[]) {
  const axes = old.flatMap((extent, i) => (extent === 1 ? [] : [[extent, steps[i] as number]]));
  const strides: number[] = [];
  let left = 1; // elements of the old axes taken from the end, less those of the new
  let taken = 1;
  let step = 1;
  for (const extent of [...shape].reverse()) {
    if (left === 1 && extent !== 1) {
      let count: number;
      [count, step] = axes.pop() as [number, number];
      // Axes that step evenly together are merged.
      while (axes.length > 0 && axes.at(-1)?.[1] === count * step)
        count *= axes.pop()?.[0] as number;
      left = count;
      taken = 1;
    }
    if (left % extent !== 0) return null;
    strides.unshift(step * taken);
    taken *= extent;
    left /= extent;
  }
  return strides;
}

/** The axes in another order. */
export function permute({ shape, strides }: Layout, axes: ArrayLike<number>): Layout {
  const count = shape.length;
  const order = listOf(axes, "axes").map((axis) => (axis < 0 ? axis + count : axis));
  const sorted = [...order].sort((a, b) => a - b);
  if (order.length !== count || sorted.some((axis, i) => axis !== i)) {
    throw new RangeError(`axes must be a permutation of 0 to ${count - 1}, not [${order}]`);
  }
  return {
    shape: order.map((axis) => shape[axis] as number),
    strides: order.map((axis) => strides[axis] as number),
    offset: 0,
  };
}

/** Some positions of each axis; all positions of omitted axes. */
export function slice({ shape, strides }: Layout, ranges: readonly Range[]): Layout {
  if (ranges.length > shape.length) {
    throw new RangeError(
      `${ranges.length} ranges for ${shape.length} axes: the range of one axis is [start, stop]`,
    );
  }
  const made = { shape: [] as number[], strides: [] as number[], offset: 0 };
  shape.forEach((extent, axis) => {
    const stride = strides[axis] as number;
    const range = ranges[axis] ?? null;
    if (typeof range === "number") {
      made.offset += placeOf(range, extent, axis) * stride;
      return;
    }
    const { start, count, step } = resolve(range ?? [], extent, axis);
    made.shape.push(count);
    made.strides.push(stride * step);
    made.offset += start * stride;
  });
  // An empty range has no start, which could be past the end.
  if (sizeOf(made.shape) === 0) made.offset = 0;
  return made;
}

/** A range as Python's `slice.indices` makes it. */
export function resolve(range: Exclude<Range, number | null>, extent: number, axis: number) {
  const isWrong = (n: unknown, i: number) => i > 2 || (n != null && !Number.isSafeInteger(n));
  if (!Array.isArray(range) || range.some(isWrong)) {
    throw new TypeError(`axis ${axis}: a number, null or [start, stop, step] is needed`);
  }
  const step = range[2] ?? 1;
  if (step === 0) throw new RangeError(`axis ${axis}: the step must not be 0`);
  const [lowest, highest] = step > 0 ? [0, extent] : [-1, extent - 1];
  const clip = (given: number | null | undefined, otherwise: number) => {
    if (given == null) return otherwise;
    return Math.min(Math.max(given < 0 ? given + extent : given, lowest), highest);
  };
  const start = clip(range[0], step > 0 ? 0 : extent - 1);
  const stop = clip(range[1], step > 0 ? extent : -1);
  return { start, step, count: Math.max(0, Math.ceil((stop - start) / step)) };
}
