/** The position of an offer's elements among bytes that a consumer must not touch. */
import { type Kind, positions, set, sizeOf, valuesFor } from "./values.js";

/** A tensor's memory layout, where it differs from row-major. */
export interface Plan {
  readonly dtype?: string;
  readonly shape?: readonly number[];
  readonly strides?: readonly number[];
  /** Foreign elements before the first one and after the last. */
  readonly around?: number;
  /** Foreign bytes before the first element. */
  readonly shift?: number;
  /** `data` begins at element 0, and others lie below it, as in memory with a `ptr`. */
  readonly below?: boolean;
  /** Bytes of `capacity` behind the last element. */
  readonly padding?: number;
  /** An exchange's flags, of which 4 makes sub-byte elements a byte wide. */
  readonly flags?: number;
}

/** What a byte is: foreign, an element's, or padding. */
type Part = "other" | "element" | "padding";

/** Marks foreign bytes. */
const STRANGE = 0xa5;

export type Layout = ReturnType<typeof layoutOf>;

/** @param guard - bytes before and behind `data` */
export function layoutOf(plan: Plan, kind: Kind, guard: number) {
  const { shape = [2, 3], strides = null, around = 0, padding = 0, flags = 0, shift = 0 } = plan;
  const step = flags & 4 ? 8 : kind.bits;
  const places = positions(shape, strides);
  const some = valuesFor(kind, sizeOf(shape), 3);
  // With strides of 0, elements are one.
  const values = some.map((_, i) => {
    const element = places.indexOf(places[Math.floor(i / kind.parts)] as number);
    return some[element * kind.parts + (i % kind.parts)] as number;
  });
  const least = Math.min(0, ...places);
  const most = Math.max(-1, ...places);
  const first = guard + shift + Math.ceil(((around - least) * step) / 8);
  const end = first + Math.ceil(((most + 1) * step) / 8) + padding;
  const stop = end + Math.ceil((around * step) / 8);
  const start = plan.below ? first : guard;
  const size = stop + guard;
  const right = new Uint8Array(size + (-size & 3)).fill(STRANGE).fill(0, first, end);
  const parts = Array.from(right, (_, i): Part => (i < first || i >= end ? "other" : "padding"));
  const bits = places.map((place) => first * 8 + place * step);
  for (const bit of bits) {
    for (let at = bit; at < bit + step; at += 8 - (at % 8)) {
      parts[Math.floor(at / 8)] = "element";
      right[Math.floor(at / 8)] = 0;
    }
  }
  const view = new DataView(right.buffer);
  values.forEach((value, i) => {
    const bit = bits[Math.floor(i / kind.parts)] as number;
    set(view, kind, bit + (i % kind.parts) * kind.width, value);
  });
  return {
    values,
    /** All bytes as they must be, foreign ones included. */
    right,
    parts,
    /** The bytes where `data` starts, where element 0 does, and where `capacity` and `data` end. */
    start,
    first,
    end,
    stop,
  };
}

/** The same bytes with all elements overwritten. */
export function overwritten({ right, parts }: Layout, fill: number): Uint8Array<ArrayBuffer> {
  return right.map((byte, i) => (parts[i] === "element" ? fill : byte));
}
