/** Buffers for tensors: idle ones, or new ones. */
import type { CopyOf } from "../../core/dtype.js";
import type { GPUDevice } from "../../core/globals.js";
import { checkAlive } from "../device/device.js";
import type { DeviceRecord } from "../device/state.js";
import { operate } from "../errors/errors.js";
import { type BufferRecord, newRecord, type Origin } from "../errors/record.js";
import { tooLarge } from "./checks.js";
import { addSlot, DEFAULT_USAGE, roundUp } from "./references.js";

/** Errors of making a buffer or texture. */
export const MAKING: readonly ("validation" | "out-of-memory")[] = ["validation", "out-of-memory"];

/** From this size on, error scopes watch making and writing a buffer. */
export const WATCHED: number = 1 << 16;

const ZEROS = new Uint8Array(1 << 12);

/** Options of {@link allocate}. */
export interface AllocateOptions {
  usage?: number;
  /** Whether the buffer must have no other flags. */
  exact?: boolean;
  /** The size is a multiple of this, itself a multiple of 16; default 16. */
  padTo?: number;
  /** Whether the elements must be 0 too, not only the padding. */
  zeros?: boolean;
}

/**
 * The handle of a buffer that {@link obtain} gives.
 *
 * @param used - bytes of the elements, which may end within one
 */
export function allocate(
  record: DeviceRecord,
  used: number,
  { usage = DEFAULT_USAGE, padTo, zeros }: AllocateOptions = {},
): number {
  checkAlive(record);
  return addSlot(record, obtain(record, Math.ceil(used), usage, padTo, zeros), { used });
}

/**
 * A buffer for `nbytes`, padded to a multiple of 16 bytes and never empty. Everything after
 * `nbytes` is 0, and with `zeros` all of it. The device works; the caller enters the buffer into the
 * table, or releases it.
 */
export function obtain(
  record: DeviceRecord,
  nbytes: number,
  usage: number,
  padTo = 16,
  zeros = false,
): BufferRecord {
  const { pool, errors, device } = record;
  const size = Math.max(roundUp(nbytes, padTo), padTo);
  if (size > device.gpu.limits.maxBufferSize) throw tooLarge(record, size);
  const words = nbytes + (-nbytes & 3);
  const origin = usage === DEFAULT_USAGE ? "tensors" : "single";
  const idle = origin === "tensors" ? pool.take(size, origin, errors) : undefined;
  const end = zeros ? 0 : words;
  if (idle && idle.dirty > end) clear(device.gpu, idle, end);
  const facts = idle ?? makeBuffer(record, size, usage, origin);
  facts.dirty = end;
  return facts;
}

/** Words of a uniform that a kernel of ours reads, in a buffer that is only for them. */
export class Words {
  readonly facts: BufferRecord;

  constructor(record: DeviceRecord, words: CopyOf<"uint32">) {
    this.facts = obtain(record, words.byteLength, DEFAULT_USAGE);
    record.device.gpu.queue.writeBuffer(this.facts.buffer, 0, words);
  }
}

/** A fresh buffer, all zeros. WebGPU reports asynchronously when it cannot make one. */
export function makeBuffer(
  record: DeviceRecord,
  size: number,
  usage: number,
  origin: Origin,
  what = `${size} bytes`,
): BufferRecord {
  // Dawn in Node reports an invalid buffer before createBuffer() returns.
  const { errors } = record;
  const { gpu } = record.device;
  // It can fail other than by losing the device because of unusual flags, or out of memory. The
  // error scopes that would report it cost more than a small upload.
  const filters = origin === "single" || size >= WATCHED ? MAKING : [];
  const { result: buffer, outcome } = operate(
    record,
    { what: `createBuffer for ${what}`, filters },
    () => gpu.createBuffer({ size, usage }),
  );
  record.pool.created++;
  return newRecord(buffer, origin, { making: outcome, errors });
}

/** Clears what the last tensor left in an idle buffer, from a word on. */
function clear(gpu: GPUDevice, { buffer, dirty }: BufferRecord, from: number): void {
  const end = Math.min(roundUp(dirty, 4), buffer.size);
  try {
    // A clear command costs more than writing a few bytes.
    if (end - from <= 4 * ZEROS.length) {
      for (let at = from; at < end; at += ZEROS.length) {
        gpu.queue.writeBuffer(buffer, at, ZEROS, 0, Math.min(ZEROS.length, end - at));
      }
    } else {
      const encoder = gpu.createCommandEncoder();
      encoder.clearBuffer(buffer, from, end - from);
      gpu.queue.submit([encoder.finish()]);
    }
  } catch (error) {
    buffer.destroy();
    throw error;
  }
}
