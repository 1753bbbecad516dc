/**
 * The last calls of a kernel. The same call is not checked again. Nor does an error scope watch it once
 * the GPU has accepted its bind group, over buffers that no other code has had: then it cannot fail.
 */
import { sameShape } from "../core/shape.js";
import { managedOf } from "../core/tensor.js";
import type { Bound } from "./arguments.js";
import type { Given, RunOptions } from "./checks/calls.js";
import { type Extent, isOpen, isPrivate, migrate, type Outcome, openOutcomes } from "./record.js";
import { extentOf } from "./references.js";
import { find } from "./slots.js";
import { type Slot, state } from "./state.js";

/** How many calls a kernel knows. */
const MOST = 8;

/** How a tensor is known again, without holding it. */
interface TensorMark {
  readonly slot: Slot;
  readonly storage: object;
  readonly handle: number;
  readonly start: number;
  readonly shape: readonly number[];
  readonly dtype: unknown;
  readonly readOnly: boolean;
}

/** null: any number; else a {@link TensorMark}, or another argument itself. */
type Mark = object | null;

/** Arguments and workgroups, which nobody changes afterwards. */
export class Marks {
  /** The positions of numbers. */
  readonly numbers: readonly number[];
  readonly #args: readonly Mark[];
  readonly #workgroups: RunOptions["workgroups"];

  constructor(args: readonly Given[], workgroups?: RunOptions["workgroups"]) {
    this.#args = args.map(markOf);
    this.numbers = this.#args.flatMap((mark, i) => (mark === null ? [i] : []));
    this.#workgroups = workgroups;
  }

  /** Whether these are the same tensors, with any numbers where numbers were. */
  fit(args: readonly Given[], workgroups?: RunOptions["workgroups"]): boolean {
    const known = this.#args;
    if (args.length !== known.length || !sameCounts(this.#workgroups, workgroups)) return false;
    for (let i = 0; i < known.length; i++) {
      if (!isMarked(known[i] as Mark, args[i] as Given)) return false;
    }
    return true;
  }
}

function markOf(arg: Given): Mark {
  if (typeof arg === "number") return null;
  const tensor = managedOf(arg);
  if (tensor === undefined) return arg;
  const { storage, handle, start, shape, dtype, readOnly } = tensor;
  const slot = find(state, handle) as Slot;
  return { slot, storage, handle, start, shape, dtype, readOnly } satisfies TensorMark;
}

function isMarked(mark: Mark, arg: Given): boolean {
  if (mark === null) return typeof arg === "number";
  const tensor = managedOf(arg);
  if (tensor === undefined) return mark === arg;
  const known = mark as TensorMark;
  return (
    tensor.handle === known.handle &&
    known.slot.refs > 0 && // the handle is not of a later slot
    tensor.storage === known.storage &&
    tensor.start === known.start &&
    tensor.dtype === known.dtype &&
    tensor.readOnly === known.readOnly &&
    tensor.strides === null &&
    (tensor.shape === known.shape || sameShape(tensor.shape, known.shape))
  );
}

function sameCounts(a: RunOptions["workgroups"], b: RunOptions["workgroups"]): boolean {
  if (a === b) return true;
  return Array.isArray(a) && Array.isArray(b) && sameShape(a, b);
}

/** What a call reads and writes. */
export interface Touched {
  readonly reads: readonly Extent[];
  readonly writes: readonly Extent[];
}

export function touchedBy(bound: readonly Bound[]): Touched {
  const reads: Extent[] = [];
  const writes: Extent[] = [];
  for (const { extent, written, temporary, tensor } of bound) {
    reads.push(extent);
    if (written) writes.push(temporary !== 0 && tensor ? extentOf(tensor) : extent);
  }
  return { reads, writes };
}

/** A bind group that is kept, and its last call. */
export interface Known {
  readonly group: GPUBindGroup;
  /** The bytes that it binds, without their tensors. */
  readonly bound: readonly Bound[];
  /** The outcome of the last run that an error scope watched; null: none did. */
  watched: Outcome | null;
  /** Whether only its own errors are in it, and not those of earlier work. */
  alone: boolean;
  /** null: there was none, or it copied some arguments. */
  call: KnownCall | null;
}

/** How a bind group was used last. */
export interface KnownCall extends Touched {
  /** Of the call among those of its kernel. */
  readonly number: number;
  readonly marks: Marks;
  readonly groups: readonly [number, number, number];
}

/** The calls of one kernel. They hold no tensor. */
export class KnownCalls {
  readonly #all: Known[] = [];

  /** The one with the same arguments. */
  find(args: readonly Given[], workgroups: RunOptions["workgroups"]): Known | undefined {
    const all = this.#all;
    for (let i = 0; i < all.length; i++) {
      const known = all[i] as Known;
      if (known.call?.marks.fit(args, workgroups)) return known;
    }
    return undefined;
  }

  numbered(number: number): Known | undefined {
    return this.#all.find(({ call }) => call?.number === number);
  }

  /** The one that binds the same bytes, whatever tensors they were of. */
  over(bound: readonly Bound[]): Known | undefined {
    return this.#all.find(
      ({ bound: known }) =>
        known.length === bound.length && known.every((one, i) => sameBytes(one, bound[i] as Bound)),
    );
  }

  /** Keeps a bind group, unless it would keep a borrowed buffer alive, which its lender frees. */
  add(group: GPUBindGroup, bound: readonly Bound[]): Known | undefined {
    if (!bound.every(({ extent }) => isPrivate(extent.facts))) return undefined;
    const bytes = bound.map((one) => ({ ...one, tensor: null }));
    const known = { group, bound: bytes, watched: null, alone: false, call: null };
    if (this.#all.unshift(known) > MOST) this.#all.pop();
    return known;
  }
}

function sameBytes({ extent, resource }: Bound, other: Bound): boolean {
  return (
    extent.facts === other.extent.facts &&
    resource.offset === other.resource.offset &&
    resource.size === other.resource.size
  );
}

/**
 * Whether a run cannot fail, but with what it reads and writes, and with the run that is watched.
 *
 * @param checked - of its kernel: then a run may follow one whose outcome is pending
 */
export function isSure({ watched, alone, bound }: Known, checked: boolean): boolean {
  if (watched === null || watched.fault) return false;
  if (watched.fault === undefined && !(alone && checked)) return false;
  for (let i = 0; i < bound.length; i++) {
    const { origin, exposed, taken } = migrate((bound[i] as Bound).extent.facts);
    if (origin !== "tensors" || exposed || taken) return false;
  }
  return true;
}

/** Whether neither that run nor any work on what it binds is pending or has failed. */
export function isQuiet({ watched, bound }: Known): boolean {
  for (let i = 0; i < bound.length; i++) {
    if (openOutcomes((bound[i] as Bound).extent).length > 0) return false;
  }
  return !isOpen(watched);
}
