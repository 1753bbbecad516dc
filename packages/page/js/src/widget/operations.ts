/** What a kernel asks of the page, as messages have it: their form may be wrong. */
import { UnsupportedError } from "dlpack-web/core";
import { type compile, textOf } from "dlpack-web/internal";

/** Elements in a buffer. */
export interface Described {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly padded: boolean;
}

/** A view of the tensor with this id. */
export interface View extends Described {
  readonly id: number;
  readonly offset: number;
  readonly strides: readonly number[] | null;
  readonly readOnly: boolean;
}

/** A call of a kernel; numbers are strings that `Number()` reads. */
export interface Call {
  readonly kernel: number;
  readonly args: readonly (View | string)[];
  readonly groups: readonly number[];
  /** Ids of the buffers that it writes. */
  readonly writes: readonly number[];
  readonly site: number;
}

/** Elements that come by the wire under a name. */
export interface Arriving extends Described {
  readonly name: string;
}

export interface KernelSource {
  readonly id: number;
  readonly wgsl: string;
  readonly entry: string;
  readonly label: string;
  readonly check: boolean;
  readonly parts: Parameters<typeof compile>[3];
  readonly site: number;
}

/** Elements of an earlier operation that were given up: they do not come, or may be wrong. */
export interface Cancel {
  readonly op: "cancel";
  readonly name: string;
  readonly why: string;
  /** The tensor that they were written to. */
  readonly to?: number;
}

/** An operation; with `reply` it is answered. */
export type Operation = { readonly reply?: number } & (
  | { op: "empty"; id: number; shape: readonly number[]; dtype: string; recorded: boolean }
  | ({ op: "take"; id: number } & Arriving)
  | { op: "write"; to: View; site: number; source: View }
  | ({ op: "write"; to: View; site: number; source?: undefined } & Arriving)
  | { op: "free"; what: readonly (readonly ["tensor" | "kernel", number])[] }
  | ({ op: "kernel" } & KernelSource)
  | { op: "run"; calls: readonly Call[]; first?: readonly number[] }
  | { op: "time"; call: Call }
  | { op: "ready"; kernel: number }
  | { op: "read"; what: readonly View[]; names: readonly string[]; site: number }
  | { op: "settle" }
  | { op: "canvas"; what: View }
  | { op: "give"; key: string; what: View | null; site: number }
  | Cancel
);

/** What a call that failed may have written, if the operation says so. */
export function writtenBy(calls: unknown): unknown[] {
  const all: unknown[] = Array.isArray(calls) ? calls : [];
  return all.flatMap((call) => (Object(call) as Partial<Call>).writes ?? []);
}

export function checkId(id: unknown): number {
  if (Number.isSafeInteger(id)) return id as number;
  throw new UnsupportedError(`the page numbers tensors and kernels, not by ${textOf(id)}`);
}

/** A list, and not an object with a length of its own. */
export function checkList<T>(given: readonly T[]): readonly T[] {
  if (Array.isArray(given)) return given;
  throw new UnsupportedError(`the page needs a list, not ${textOf(given)}`);
}

export function checkName(name: unknown): void {
  if (typeof name === "string") return;
  throw new UnsupportedError(`the page names tensors by strings, not ${textOf(name)}`);
}
