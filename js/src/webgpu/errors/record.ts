/**
 * The record of one `GPUBuffer`, with the deferred errors of its bytes. Records are in the state that all
 * copies of this library share, so every copy, view and exchange of the buffer sees its faults and old
 * bytes. Nothing else is stored by buffer.
 */
import type { GPUBuffer } from "../../core/globals.js";
import { shared } from "../../core/realm.js";

/**
 * Number of the fields below. To add a field, increment it; {@link migrate} then gives the field its worst
 * case in records that an older copy has had.
 */
const FORMAT = 1;

const buffers = shared("buffers", () => ({
  records: new WeakMap<GPUBuffer, BufferRecord>(),
  /** The last `id`. */
  last: 0,
}));

/** One error, shared by the operations that depend on it. */
export interface Fault {
  readonly error: Error;
  /** Whether it was reported: to a reader, or else to a listener. */
  reported: boolean;
  /** Of elements that a recorded kernel computes: their batch, null at first. A run of it ends the fault. */
  batch?: object | null;
  /** Their buffer: what was computed from them meanwhile keeps the fault. */
  readonly buffer?: BufferRecord;
}

/** The GPU's result for an operation and its dependencies; errors.ts makes them. */
export interface Outcome {
  /** null: success; undefined: not known yet. */
  fault: Fault | null | undefined;
  /** Resolves to the final `fault`; never rejects. */
  readonly done: Promise<Fault | null>;
}

/**
 * Where a buffer comes from: made for the pool of tensors or of readbacks, made with other usage
 * flags and destroyed after one use, or foreign.
 */
export type Origin = "tensors" | "staging" | "single" | "others";

/** The outcome of the work that wrote the bytes from `start` to `end`. */
export interface Written {
  readonly start: number;
  readonly end: number;
  readonly outcome: Outcome;
}

export interface BufferRecord {
  /** The lowest format of all copies that have had the record. */
  format: number;
  readonly gpu: GPUBuffer;
  /** Identifies buffers in keys. */
  readonly id: number;
  readonly origin: Origin;
  /** Number of slots over it. */
  slots: number;
  /** Whether code outside of this library has had it, and may have destroyed it. */
  exposed: boolean;
  /** Whether foreign code has it now, by an exchange. */
  exported: boolean;
  /** Whether foreign code may keep it: then only the garbage collector frees it. */
  escaped: boolean;
  /** Bytes from the start that may not be 0. */
  dirty: number;
  /** The outcome of creating it; null while no error scope has watched that, or its use. */
  creation: Outcome | null;
  /** `errors` of the device when it was created. */
  readonly errors: number;
  /** Writes that are not known to have succeeded, in order and without overlaps. */
  writes: Written[];
}

/** A record for a buffer that has none. */
export function newRecord(
  gpu: GPUBuffer,
  origin: Origin,
  { creation = null, errors = 0 }: Partial<Pick<BufferRecord, "creation" | "errors">> = {},
): BufferRecord {
  const isForeign = origin === "others";
  const record: BufferRecord = {
    format: FORMAT,
    gpu,
    id: ++buffers.last,
    origin,
    slots: 0,
    exposed: isForeign,
    exported: false,
    escaped: isForeign,
    dirty: isForeign ? gpu.size : 0,
    creation,
    errors,
    writes: [],
  };
  buffers.records.set(gpu, record);
  return record;
}

/** The record of any buffer. */
export function recordOf(gpu: GPUBuffer): BufferRecord {
  const found = buffers.records.get(gpu);
  return found === undefined ? newRecord(gpu, "others") : migrate(found);
}

/** A newer copy of the library sees from the format which fields this one has not maintained. */
export function migrate(buffer: BufferRecord): BufferRecord {
  if (buffer.format > FORMAT) buffer.format = FORMAT;
  return buffer;
}

/** Whether we made the buffer, and no code that follows the protocol can destroy it. */
export function isPrivate({ origin, exported, escaped }: BufferRecord): boolean {
  return (origin === "tensors" || origin === "single") && !exported && !escaped;
}

/** Bytes up to this one may have been written. */
export function markWritten(buffer: BufferRecord, end: number): void {
  if (buffer.dirty < end) buffer.dirty = end;
}

/** Foreign code gets the buffer, and may write to it until it returns it. */
export function markExposed(buffer: BufferRecord): void {
  buffer.exposed = buffer.exported = true;
  buffer.dirty = buffer.gpu.size;
}

// --- outcomes of writes
// ------------------------------------------------------------------------------

/** Bytes of a buffer. */
export interface Extent {
  readonly buffer: BufferRecord;
  readonly start: number;
  readonly end: number;
}

/** Whether it is pending or failed. */
export function isOpen(outcome: Outcome | null): outcome is Outcome {
  return outcome !== null && outcome.fault !== null;
}

const NONE: readonly Outcome[] = [];

/** Pending or failed work of some bytes: creating the buffer, and writes to it. */
export function openOutcomes({ buffer, start, end }: Extent): readonly Outcome[] {
  const { creation, writes } = buffer;
  if (writes.length === 0 || start >= end) return isOpen(creation) ? [creation] : NONE;
  const open = isOpen(creation) ? [creation] : [];
  for (let i = firstAfter(writes, start); i < writes.length; i++) {
    const written = writes[i] as Written;
    if (written.start >= end) break;
    if (isOpen(written.outcome) && !open.includes(written.outcome)) open.push(written.outcome);
  }
  return open;
}

/** Replaces the outcome of some bytes; null: success. */
export function setOutcome({ buffer, start, end }: Extent, outcome: Outcome | null): void {
  const { writes } = buffer;
  if (start >= end || (outcome === null && writes.length === 0)) return;
  const first = firstAfter(writes, start);
  let last = first;
  while (last < writes.length && (writes[last] as Written).start < end) last++;
  const parts: Written[] = [];
  for (const old of writes.slice(first, last)) {
    if (!isOpen(old.outcome)) continue;
    if (old.start < start) parts.push({ ...old, end: start });
    if (old.end > end) parts.push({ ...old, start: end });
  }
  if (outcome !== null) {
    const at = parts[0] && parts[0].end <= start ? 1 : 0;
    parts.splice(at, 0, { start, end, outcome });
  }
  writes.splice(first, last - first, ...parts);
  // Drops finished work without faults, rarely enough to cost nothing.
  const { length } = writes;
  if (length >= 64 && (length & (length - 1)) === 0) {
    buffer.writes = writes.filter((written) => isOpen(written.outcome));
  }
}

/** Forgets earlier writes. */
export function forget(buffer: BufferRecord): void {
  if (buffer.writes.length > 0) buffer.writes = [];
}

/** The first that ends behind a byte. */
function firstAfter(writes: readonly Written[], start: number): number {
  let low = 0;
  let high = writes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((writes[middle] as Written).end <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}
