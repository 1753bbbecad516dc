/**
 * The record of one `GPUBuffer`. Records are in the state that all copies of this library share, so
 * every copy, view and exchange of the buffer sees its faults and old bytes. Nothing else is kept
 * by buffer.
 */
import type { GPUBuffer } from "../../core/globals.js";
import { shared } from "../../core/realm.js";

/**
 * Number of the fields below. To add a field, increment it; {@link migrate} then gives the field its worst
 * case in records that an older copy has had.
 */
const FORMAT = 1;

const known = shared("buffers", () => ({
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
  readonly facts?: BufferRecord;
}

/** The GPU's result for an operation and its dependencies; faults.ts makes them. */
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
  readonly buffer: GPUBuffer;
  /** Identifies buffers in keys. */
  readonly id: number;
  readonly origin: Origin;
  /** Number of slots over it. */
  holds: number;
  /** Whether code outside of this library has had it, and may have destroyed it. */
  exposed: boolean;
  /** Whether foreign code has it now, by an exchange. */
  exported: boolean;
  /** Whether foreign code may keep it: then only the garbage collector frees it. */
  taken: boolean;
  /** Bytes from the start that may not be 0. */
  dirty: number;
  /** The outcome of making it; null while no error scope has watched that, or its use. */
  making: Outcome | null;
  /** `errors` of the device when it was made. */
  readonly errors: number;
  /** Writes that are not known to have succeeded, in order and without overlaps. */
  work: Written[];
}

/** A record for a buffer that has none. */
export function newRecord(
  buffer: GPUBuffer,
  origin: Origin,
  { making = null, errors = 0 }: Partial<Pick<BufferRecord, "making" | "errors">> = {},
): BufferRecord {
  const made = origin !== "others";
  const record: BufferRecord = {
    format: FORMAT,
    buffer,
    id: ++known.last,
    origin,
    holds: 0,
    exposed: !made,
    exported: false,
    taken: !made,
    dirty: made ? 0 : buffer.size,
    making,
    errors,
    work: [],
  };
  known.records.set(buffer, record);
  return record;
}

/** The record of any buffer. */
export function recordOf(buffer: GPUBuffer): BufferRecord {
  const found = known.records.get(buffer);
  return found === undefined ? newRecord(buffer, "others") : migrate(found);
}

/** A newer copy of the library sees from the format which fields this one has not kept. */
export function migrate(record: BufferRecord): BufferRecord {
  if (record.format > FORMAT) record.format = FORMAT;
  return record;
}

/** Whether we made the buffer, and no code that follows the protocol can destroy it. */
export function isPrivate({ origin, exported, taken }: BufferRecord): boolean {
  return (origin === "tensors" || origin === "single") && !exported && !taken;
}

/** Bytes up to this one may have been written. */
export function markWritten(record: BufferRecord, end: number): void {
  if (record.dirty < end) record.dirty = end;
}

/** Foreign code gets the buffer, and may write to it until it returns it. */
export function markExposed(record: BufferRecord): void {
  record.exposed = record.exported = true;
  record.dirty = record.buffer.size;
}

// --- outcomes of writes
// ------------------------------------------------------------------------------

/** Bytes of a buffer. */
export interface Extent {
  readonly facts: BufferRecord;
  readonly start: number;
  readonly end: number;
}

/** Whether it is pending or failed. */
export function isOpen(outcome: Outcome | null): outcome is Outcome {
  return outcome !== null && outcome.fault !== null;
}

const NONE: readonly Outcome[] = [];

/** Pending or failed work of some bytes: making the buffer, and writes to it. */
export function openOutcomes({ facts, start, end }: Extent): readonly Outcome[] {
  const { making, work } = facts;
  if (work.length === 0 || start >= end) return isOpen(making) ? [making] : NONE;
  const open = isOpen(making) ? [making] : [];
  for (let i = firstAfter(work, start); i < work.length; i++) {
    const written = work[i] as Written;
    if (written.start >= end) break;
    if (isOpen(written.outcome) && !open.includes(written.outcome)) open.push(written.outcome);
  }
  return open;
}

/** Replaces the outcome of some bytes; null: success. */
export function setOutcome({ facts, start, end }: Extent, outcome: Outcome | null): void {
  const { work } = facts;
  if (start >= end || (outcome === null && work.length === 0)) return;
  const first = firstAfter(work, start);
  let last = first;
  while (last < work.length && (work[last] as Written).start < end) last++;
  const parts: Written[] = [];
  for (const old of work.slice(first, last)) {
    if (!isOpen(old.outcome)) continue;
    if (old.start < start) parts.push({ ...old, end: start });
    if (old.end > end) parts.push({ ...old, start: end });
  }
  if (outcome !== null) {
    const at = parts[0] && parts[0].end <= start ? 1 : 0;
    parts.splice(at, 0, { start, end, outcome });
  }
  work.splice(first, last - first, ...parts);
  // Drops finished work without faults, rarely enough to cost nothing.
  const { length } = work;
  if (length >= 64 && (length & (length - 1)) === 0) {
    facts.work = work.filter((written) => isOpen(written.outcome));
  }
}

/** Forgets earlier writes. */
export function forget(facts: BufferRecord): void {
  if (facts.work.length > 0) facts.work = [];
}

/** The first that ends behind a byte. */
function firstAfter(work: readonly Written[], start: number): number {
  let low = 0;
  let high = work.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((work[middle] as Written).end <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}
