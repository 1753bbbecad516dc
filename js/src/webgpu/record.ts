/**
 * All that is known about one `GPUBuffer`. The records lie in the state that all copies of this
 * library share, so faults and old bytes are known to every copy, view and exchange that the buffer
 * comes back by. Nothing else is kept by buffer.
 */
import type { GPUBuffer } from "../core/globals.js";
import { shared } from "../core/realm.js";

/** Number of the fields below. A copy that adds one counts it up, and adds to {@link agree}. */
const FORMAT = 1;

const known = shared("buffers", () => ({
  records: new WeakMap<GPUBuffer, BufferRecord>(),
  /** The `id` that was given last. */
  last: 0,
}));

/** What went wrong, once: operations that build on it share it. */
export interface Fault {
  readonly error: Error;
  /** Whether somebody was told: a reader, or else a listener. */
  told: boolean;
}

/** What the GPU says of an operation, and of those that it builds on; faults.ts makes them. */
export interface Outcome {
  /** null: all is well; undefined: not known yet. */
  fault: Fault | null | undefined;
  /** Resolves to what `fault` is then; never rejects. */
  readonly done: Promise<Fault | null>;
}

/**
 * Where a buffer comes from: made for the pool of tensors or of readbacks, made with other usage
 * flags and destroyed after one use, or made by others.
 */
export type Origin = "tensors" | "staging" | "single" | "others";

/** What the GPU says of the work that wrote the bytes from `start` to `end`. */
export interface Written {
  readonly start: number;
  readonly end: number;
  readonly outcome: Outcome;
}

export interface BufferRecord {
  /** The lowest format of all copies that have had the record. */
  format: number;
  readonly buffer: GPUBuffer;
  /** Tells buffers apart where they are keys. */
  readonly id: number;
  readonly origin: Origin;
  /** Number of slots over it. */
  holds: number;
  /** Whether code outside of this library has had it, and may have destroyed it. */
  seen: boolean;
  /** Whether it has it now, by an exchange. */
  lent: boolean;
  /** Whether foreign code may keep it for ever: then only the garbage collector frees it. */
  taken: boolean;
  /** Bytes from the start that may be something else than 0. */
  dirty: number;
  /** What the GPU says, later, of making it; null where it was not asked. */
  readonly making: Outcome | null;
  /** `troubles` of the device when it was made. */
  readonly troubles: number;
  /** What is not known to be well of its bytes, in their order and without overlaps. */
  work: Written[];
}

/** A record for a buffer that has none. */
export function newRecord(
  buffer: GPUBuffer,
  origin: Origin,
  { making = null, troubles = 0 }: Partial<Pick<BufferRecord, "making" | "troubles">> = {},
): BufferRecord {
  const made = origin !== "others";
  const record: BufferRecord = {
    format: FORMAT,
    buffer,
    id: ++known.last,
    origin,
    holds: 0,
    seen: !made,
    lent: false,
    taken: !made,
    dirty: made ? 0 : buffer.size,
    making,
    troubles,
    work: [],
  };
  known.records.set(buffer, record);
  return record;
}

/** The record of a buffer, whoever made it. */
export function recordOf(buffer: GPUBuffer): BufferRecord {
  const found = known.records.get(buffer);
  return found === undefined ? newRecord(buffer, "others") : agree(found);
}

/**
 * A record that another copy of the library may have had. What an older one did not keep is taken
 * for the worst; a newer one sees by the format what this one does not keep.
 */
export function agree(record: BufferRecord): BufferRecord {
  if (record.format === FORMAT) return record;
  if (!(record.format > FORMAT)) {
    record.holds ??= 1;
    record.seen = record.taken = true;
    record.lent ??= true;
    record.dirty = record.buffer.size;
    record.work ??= [];
  }
  record.format = Math.min(record.format || 0, FORMAT);
  return record;
}

/** Whether we made the buffer, and no code that follows the protocol can destroy it. */
export function isPrivate({ origin, lent, taken }: BufferRecord): boolean {
  return (origin === "tensors" || origin === "single") && !lent && !taken;
}

/**
 * Whether an idle buffer is usable, as far as is known. If no error scope watched its creation, or
 * foreign code has had it, any later error of the device may mean that it is missing.
 */
export function isSound(record: BufferRecord, now: number): boolean {
  if (record.format !== FORMAT && agree(record).taken) return false;
  const { making, work, seen, troubles } = record;
  if (making?.fault || work.some(({ outcome }) => outcome.fault)) return false;
  return troubles === now || (making?.fault === null && !seen);
}

/** Somebody may have written up to that byte. */
export function markWritten(record: BufferRecord, end: number): void {
  if (record.dirty < end) record.dirty = end;
}

/** Others get the buffer, to write in it what they like, until they give it back. */
export function markSeen(record: BufferRecord): void {
  record.seen = record.lent = true;
  record.dirty = record.buffer.size;
}

// --- what the GPU says of the bytes ------------------------------------------------------------------

/** Bytes of a buffer. */
export interface Extent {
  readonly facts: BufferRecord;
  readonly start: number;
  readonly end: number;
}

/** Whether more is to be known of it than that all is well. */
export function isOpen(outcome: Outcome | null): outcome is Outcome {
  return outcome !== null && outcome.fault !== null;
}

const NONE: readonly Outcome[] = [];

/** What is not known to be well about some bytes: making the buffer, and what was written there. */
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

/** Replaces what is known of some bytes; null: all is well. */
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

/** What was written is of no interest any more. */
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
