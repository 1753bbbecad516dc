/** The table of buffers, by the handles that tensors have, and what of a buffer is a tensor's. */
import { quietly, ReleasedError } from "../../core/errors.js";
import type { GPUBuffer } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { type DeviceRecord, type Slot, state } from "../device/state.js";
import { type BufferRecord, type Extent, forget, migrate } from "../errors/record.js";
import { isSound } from "./pool.js";
import { enter, find, leave } from "./slots.js";

/** `GPUBufferUsage`, which is a global only where WebGPU is. */
export const Usage = {
  ...{ MAP_READ: 1, MAP_WRITE: 2, COPY_SRC: 4, COPY_DST: 8, INDEX: 16, VERTEX: 32 },
  ...{ UNIFORM: 64, STORAGE: 128, INDIRECT: 256, QUERY_RESOLVE: 512 },
} as const;

/** The default usage of buffers made here: all uses of tensors. */
export const DEFAULT_USAGE = Usage.STORAGE | Usage.UNIFORM | Usage.COPY_SRC | Usage.COPY_DST;

/** The least multiple of `step` that is not below `n`. Exact beyond 2^32. */
export function roundUp(n: number, step: number): number {
  return Math.ceil(n / step) * step;
}

/** Enters a buffer into the table, with one reference; returns its handle. */
export function addSlot(
  record: DeviceRecord,
  facts: BufferRecord,
  more: Partial<Pick<Slot, "release" | "used" | "end">> = {},
): number {
  const { buffer } = facts;
  const { release = null, used = buffer.size, end = buffer.size } = more;
  const slot = { buffer, record, facts, release, refs: 1, used, end, generation: 0, next: 0 };
  const handle = enter(state, slot);
  facts.holds++;
  return handle;
}

/** A slot that holds a buffer. */
export type LiveSlot = Slot & {
  readonly buffer: GPUBuffer;
  readonly record: DeviceRecord;
  readonly facts: BufferRecord;
};

/** The slot of a handle; throws ReleasedError for a stale or forged one. */
export function slotOf(handle: number): LiveSlot {
  const slot = find(state, handle) as LiveSlot | undefined;
  if (slot) {
    migrate(slot.facts);
    return slot;
  }
  throw new ReleasedError(`GPU handle 0x${handle.toString(16)} is not (or no longer) in use`, {
    given: handle,
  });
}

/** Adds a reference. */
export function retainSlot(handle: number): LiveSlot {
  const slot = slotOf(handle);
  slot.refs++;
  return slot;
}

/** Drops a reference; the last one releases the buffer. Never throws: C calls it as well. */
export function releaseSlot(handle: number): void {
  quietly(() => {
    const slot = slotOf(handle);
    if (--slot.refs > 0) return;
    const { release, record, facts } = slot;
    leave(state, handle);
    if (--facts.holds === 0) dispose(record, facts);
    release?.();
  });
}

/** Disposes of a buffer without tensors. */
export function dispose(record: DeviceRecord, facts: BufferRecord): void {
  const { buffer, origin, taken } = facts;
  // Its owner keeps using it.
  if (origin === "others") forget(facts);
  else if (origin === "single") buffer.destroy();
  else if (record.lost !== null || taken) return;
  else if (!isSound(facts, record.errors)) buffer.destroy();
  else {
    forget(facts); // the next tensor overwrites all that it shows
    facts.exported = false;
    record.pool.give(facts);
  }
}

/** The bytes from a tensor's first element to its last. */
export function extentOf(tensor: ManagedTensor): Extent {
  const { facts } = slotOf(tensor.handle);
  if (tensor.strides === null) {
    const first = Math.floor(tensor.start);
    return { facts, start: first, end: first + tensor.nbytes };
  }
  const { start, bytes } = tensor.span;
  return { facts, start, end: start + bytes };
}

/** Implements the `capacity` of an exchange. A view may be followed by another view's elements. */
export function capacityOf(tensor: ManagedTensor): number {
  const { used, end } = slotOf(tensor.handle);
  const { start, bytes } = tensor.span;
  const stop = start + (tensor.strides === null ? tensor.exact : bytes);
  // A byte that the elements end within may be a neighbour's, too.
  return (stop >= used ? end : Math.floor(stop)) - tensor.start;
}
