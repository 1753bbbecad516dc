/**
 * Parts of a tensor in a file: which bytes they have, and which blocks of the file are read for
 * them. Steps backwards and single positions are views of what is loaded: bytes are only read
 * forwards.
 */
import { cut, textOf, UnsupportedError } from "../core/errors.js";
import { placeOf, sizeOf } from "../core/shape.js";
import { type Range, resolve } from "../core/views.js";
import { type Described, nbytesOf } from "./entry.js";
import type { Chunks } from "./source.js";

/** Ranges of axes; of Python, made when their number is known. */
export type Ranges = readonly Range[] | ((ndim: number) => readonly Range[]);

/** What one more block costs, in bytes that could be read meanwhile: that of a request. */
export const OVERHEAD = 1 << 16;
/** Bytes that may be read in vain for a part of a remote file, if it has fewer itself. */
const WASTE = 1 << 20;
/** Blocks of a remote file that are read for one part. */
const MOST = 128;
/** Bytes that are gathered of short runs. */
const ROOM = 1 << 18;

/** Bytes of runs that are copied faster one by one. */
const SHORT = 32;

/** Positions of one axis. */
interface Axis {
  readonly count: number;
  /** Bytes from the start of the tensor to the first. */
  readonly start: number;
  /** Bytes from one to the next. */
  readonly stride: number;
  /** Bytes of one position of this axis. */
  readonly each: number;
}

/** A part of a tensor. */
export interface Part {
  /** What is loaded of the file's axes. */
  readonly loaded: Described;
  readonly nbytes: number;
  /** The part as a view of that. */
  readonly view: readonly Range[];
  readonly shape: readonly number[];
  /** In the order of the file's bytes: the slowest first. */
  readonly axes: readonly Axis[];
}

/** How the bytes of a part are read: of each block some runs. All ascend. */
export interface Plan {
  readonly count: number;
  /** Bytes of a block. */
  readonly length: number;
  /** Where the blocks begin, in bytes from the start of the tensor. */
  starts(): Generator<number, void, undefined>;
  /** Bytes of a run. */
  readonly run: number;
  /** Runs of a row, and bytes from the start of one to that of the next. */
  readonly times: number;
  readonly apart: number;
  /** Where the rows begin, in bytes from the start of their block. */
  rows(): Generator<number, void, undefined>;
}

/**
 * The part of a tensor that ranges select; throws as `tensor.slice`, and UnsupportedError for elements
 * of less than a byte.
 */
export function partOf(whole: Described, given: Ranges, what: string): Part {
  const { type, shape: extents, columns } = whole;
  const ranges = typeof given === "function" ? given(extents.length) : given;
  if (!Array.isArray(ranges)) {
    throw new TypeError(
      `part must be an array of ranges, one for each axis, not ${textOf(ranges)}`,
    );
  }
  if (ranges.length > extents.length) {
    throw new RangeError(`${ranges.length} ranges for ${extents.length} axes of ${cut(what, 300)}`);
  }
  const view: Range[] = [];
  const taken = extents.map((extent, axis) => {
    const range = ranges[axis] ?? null;
    if (typeof range === "number") {
      view.push(0);
      return { start: placeOf(range, extent, axis), count: 1, step: 1, extent };
    }
    const { start, count, step } = resolve(range ?? [], extent, axis);
    view.push(step < 0 ? [null, null, -1] : null);
    const first = step < 0 ? start + Math.max(count - 1, 0) * step : start;
    return { start: first, count, step: Math.abs(step), extent };
  });
  if (type.step % 1 !== 0) {
    throw new UnsupportedError(
      `${what}: parts of ${type.name}, whose elements have less than a byte, are not supported: ` +
        "load all of it, and slice the tensor",
      { given: type.name },
    );
  }
  const shape = taken.map(({ count }) => count);
  let each = type.step;
  const axes: Axis[] = [];
  for (const { start, count, step, extent } of columns ? taken : taken.reverse()) {
    axes.unshift({ count, start: start * each, stride: step * each, each });
    each *= extent;
  }
  const loaded = { type, shape, columns };
  const asked = shape.filter((_, axis) => typeof view[axis] !== "number");
  return { loaded, nbytes: nbytesOf(loaded), view, shape: asked, axes };
}

/**
 * The blocks that cost least, of at least one byte, and `most` of them at most. If `remote`, they are
 * requests, for which only with `whole` any number of bytes may be read.
 */
export function planOf(
  { axes, nbytes }: Part,
  what: string,
  remote: boolean,
  whole = false,
  most = remote ? MOST : Infinity,
): Plan {
  const item = axes.at(-1)?.each ?? nbytes;
  const blocks = axes.map((_, first) => blocksOf(axes, first, item));
  blocks.push(blocksOf(axes, axes.length, item));
  const cost = ({ count, length }: { count: number; length: number }) =>
    count * (OVERHEAD + length);
  const best = blocks
    .filter(({ count }) => count <= most)
    .reduce((a, b) => (cost(b) < cost(a) ? b : a));
  const read = best.count * best.length;
  if (remote && !whole && read - nbytes > Math.max(nbytes, WASTE)) {
    const { count } = blocks.at(-1) as { count: number };
    const why = most === 1 ? " with one request, as no strong ETag is visible" : "";
    throw new UnsupportedError(
      `${what}: this part is scattered: ${nbytes} bytes in ${count} places, for which ${read} would be ` +
        `read${why}; load contiguous rows and slice them, or set the option \`whole\` to read all of it`,
      { given: read, needed: nbytes },
    );
  }
  const offset = axes.reduce((sum, { start }) => sum + start, 0);
  const inner = axes.slice(best.first);
  let run = item;
  while (inner.length > 0) {
    const { count, stride, each } = inner.at(-1) as Axis;
    if (each !== run || (count > 1 && stride !== each)) break;
    run *= count;
    inner.pop();
  }
  const { count: times, stride: apart } = inner.pop() ?? { count: 1, stride: 0 };
  return {
    ...best,
    run,
    times,
    apart,
    rows: () => placesOf(inner),
    *starts() {
      for (const place of placesOf(axes.slice(0, best.first))) yield offset + place;
    },
  };
}

/** A block for each position of the axes before `first`, which covers those of the others. */
function blocksOf(axes: readonly Axis[], first: number, item: number) {
  const count = sizeOf(axes.slice(0, first).map((axis) => axis.count));
  const inner = axes.slice(first);
  const length = inner.reduce((sum, axis) => sum + (axis.count - 1) * axis.stride, item);
  return { first, count, length };
}

/** The positions of some axes, in bytes from the first. */
function* placesOf(axes: readonly Axis[]): Generator<number, void, undefined> {
  const at = axes.map(() => 0);
  let place = 0;
  for (;;) {
    yield place;
    let axis = axes.length - 1;
    for (; axis >= 0; axis--) {
      const { count, stride } = axes[axis] as Axis;
      const next = (at[axis] as number) + 1;
      at[axis] = next % count;
      place += (at[axis] as number) === 0 ? -(count - 1) * stride : stride;
      if (next < count) break;
    }
    if (axis < 0) return;
  }
}

/** The runs in the chunks of a block. */
export async function* runsIn(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  plan: Plan,
): Chunks {
  if (plan.run === plan.length) {
    yield* chunks;
    return;
  }
  const block = new Uint8Array(ROOM);
  let filled = 0;
  const { run, times, apart } = plan;
  const rows = plan.rows();
  let place = rows.next().value as number | undefined;
  let end = (place as number) + run;
  let nth = 1; // of its row
  let at = 0; // where the chunk begins
  for await (const chunk of chunks) {
    const stop = at + chunk.length;
    while (place !== undefined && place < stop) {
      const count = Math.min(end, stop) - place;
      const from = place - at;
      if (filled + count > ROOM) {
        yield block.subarray(0, filled);
        filled = 0;
      }
      if (count > ROOM) yield chunk.subarray(from, from + count);
      else if (count > SHORT) {
        block.set(chunk.subarray(from, from + count), filled);
        filled += count;
      } else for (let i = 0; i < count; i++) block[filled++] = chunk[from + i] as number;
      place += count;
      if (place < end) break;
      place = nth < times ? end - run + apart : (rows.next().value as number | undefined);
      nth = (nth % times) + 1;
      end = (place ?? 0) + run;
    }
    at = stop;
  }
  if (filled > 0) yield block.subarray(0, filled);
}
