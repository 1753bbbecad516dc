/**
 * The last calls of a kernel. A cached call is the same call: with the same tensors, by serial number,
 * the same options, and numbers where numbers were. It is not checked again. Nor does an error scope
 * watch it once the GPU has accepted its bind group, over buffers that no other code has had: then it
 * cannot fail, but with the work on what it reads and writes.
 */
import type { ManagedTensor } from "../../core/managed.js";
import { managedOf } from "../../core/tensor.js";
import { extentIn } from "../buffers/slot.js";
import {
  type BufferRecord,
  type Extent,
  isPrivate,
  migrate,
  type Outcome,
  openOutcomes,
} from "../errors/record.js";
import type { Bound } from "./arguments.js";

/** How many bind groups a kernel caches, each with a call. */
const MOST = 8;

/**
 * A call as numbers, the same for the same call alone: how many there are, how many arguments; of each
 * the serial number of the tensor, or 0 for a number; the options. Python's are of wasm/bridge.c.
 */
export function keyOf(args: readonly unknown[], options: readonly unknown[]): number[] {
  const { length } = args;
  const key = new Array<number>(2 + length + options.length); // not grown: it is made for each call
  key[0] = key.length;
  key[1] = length;
  for (let i = 0; i < length; i++) {
    const arg = args[i];
    key[2 + i] = typeof arg === "number" ? 0 : serialOf(managedOf(arg));
  }
  for (let i = 0; i < options.length; i++) key[2 + length + i] = options[i] as number;
  return key;
}

/** NaN, which is not the same as itself, for what was released, and for no tensor. */
const serialOf = (tensor: ManagedTensor | undefined) =>
  tensor?.handle ? tensor.serial : Number.NaN;

function isSame(key: readonly number[], given: ArrayLike<number>, at: number): boolean {
  for (let i = 0; i < key.length; i++) if (key[i] !== given[at + i]) return false;
  return true;
}

/** The bytes that a call reads and writes. */
export interface Touched {
  readonly reads: readonly Extent[];
  readonly writes: readonly Extent[];
}

export function touchedBy(bound: readonly Bound[]): Touched {
  const reads: Extent[] = [];
  const writes: Extent[] = [];
  for (const { extent, written, temporary, tensor, slot } of bound) {
    reads.push(extent);
    if (written) writes.push(temporary !== 0 && tensor && slot ? extentIn(slot, tensor) : extent);
  }
  return { reads, writes };
}

/** A call that may run again: its arguments are bound in place, in order, and then words of ours. */
export interface CachedCall extends Touched {
  readonly key: readonly number[];
  readonly groups: readonly [number, number, number];
}

/** A cached bind group, and the last call with it. It references no tensor. */
export interface CachedGroup {
  readonly group: GPUBindGroup;
  readonly bytes: readonly { buffer: BufferRecord; offset: number; size: number }[];
  /** The outcome of the last run that an error scope watched; null: none did. */
  validation: Outcome | null;
  /** Errors of the device before that run; -1: its outcome may be an error of earlier work. */
  errors: number;
  call: CachedCall | null;
}

/** The cached bind groups of one kernel. */
export class CallCache {
  readonly #groups: CachedGroup[] = [];

  /** The bind group of the call whose key begins at `at`. */
  find(key: ArrayLike<number>, at: number): CachedGroup | undefined {
    const groups = this.#groups;
    for (let i = 0; i < groups.length; i++) {
      const found = groups[i] as CachedGroup;
      if (found.call !== null && isSame(found.call.key, key, at)) return found;
    }
    return undefined;
  }

  /** The bind group of the same bytes, of any tensors. */
  over(bound: readonly Bound[]): CachedGroup | undefined {
    return this.#groups.find(
      ({ bytes }) =>
        bytes.length === bound.length &&
        bytes.every(({ buffer, offset, size }, i) => {
          const { extent, resource } = bound[i] as Bound;
          return buffer === extent.buffer && offset === resource.offset && size === resource.size;
        }),
    );
  }

  /** Caches a bind group, unless that would keep a foreign buffer alive, which its owner frees. */
  add(group: GPUBindGroup, bound: readonly Bound[]): CachedGroup | undefined {
    if (!bound.every(({ extent }) => isPrivate(extent.buffer))) return undefined;
    const bytes = bound.map(({ extent: { buffer }, resource: { offset, size } }) => ({
      buffer,
      offset,
      size,
    }));
    const added = { group, bytes, validation: null, errors: -1, call: null };
    if (this.#groups.unshift(added) > MOST) this.#groups.pop();
    return added;
  }
}

/**
 * Whether a run cannot fail, but with the work on what it reads and writes, and with the run that was
 * watched. The device has so many errors by `now`; -1: it may not follow a run whose outcome is pending.
 */
export function isValidated({ validation, errors, bytes }: CachedGroup, now: number): boolean {
  if (validation === null || validation.fault) return false;
  if (validation.fault === undefined && (now < 0 || errors !== now)) return false;
  for (let i = 0; i < bytes.length; i++) {
    const { origin, exposed, escaped } = migrate((bytes[i] as { buffer: BufferRecord }).buffer);
    if (origin !== "tensors" || exposed || escaped) return false;
  }
  return true;
}

function areOpen(extents: readonly Extent[]): boolean {
  for (let i = 0; i < extents.length; i++) {
    if (openOutcomes(extents[i] as Extent).length > 0) return true;
  }
  return false;
}

/** Whether work on what a call reads and writes is pending or has failed. */
export function hasPendingError({ reads, writes }: Touched): boolean {
  return areOpen(reads) || areOpen(writes);
}
