/** Buffers for new tensors: idle ones of the device's pool, or fresh ones. */
import type { CopyOf } from "../../core/dtype.js";
import type { DeviceRecord, Pool } from "../device/device.js";
import { CREATION_ERRORS, operate } from "../errors/errors.js";
import { type BufferRecord, forget, newRecord, type Origin } from "../errors/record.js";
import { tooLarge } from "./checks.js";
import { DEFAULT_USAGE, type LiveSlot, roundUp } from "./slot.js";
import { addSlot, dispose } from "./table.js";

/** Bytes of idle buffers that a device keeps; beyond, the least recently used go first. */
const BUDGET = 256 << 20;
/** After so long without use, all are destroyed. */
const IDLE_MS = 10_000;

/**
 * Whether an idle buffer is presumably valid. If no error scope watched its creation, or foreign
 * code has had it, any later error of the device, which has so many by `now`, may mean that it is not.
 */
export function isReusable(buffer: BufferRecord, now: number): boolean {
  const { creation, writes, exposed, errors } = buffer;
  if (creation?.fault || writes.some(({ outcome }) => outcome.fault)) return false;
  return errors === now || (creation?.fault === null && !exposed);
}

/** Idle buffers by purpose and size, the most recently used kind at the end. */
export class IdlePool implements Pool {
  idleBytes = 0;
  created = 0;
  reused = 0;
  readonly #idle = new Map<number, BufferRecord[]>();
  /** The one at the end. */
  #last: number | undefined;
  #used = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  take(size: number, origin: Origin, errors: number): BufferRecord | undefined {
    const kind = this.#idle.get(origin === "staging" ? -size : size);
    for (let buffer = kind?.pop(); buffer !== undefined; buffer = kind?.pop()) {
      this.idleBytes -= size;
      this.#used = true;
      if (isReusable(buffer, errors)) {
        this.reused++;
        return buffer;
      }
      if (!buffer.escaped) buffer.gpu.destroy();
    }
    return undefined;
  }

  give(buffer: BufferRecord, errors: number): void {
    if (!isReusable(buffer, errors)) {
      buffer.gpu.destroy();
      return;
    }
    forget(buffer); // the next tensor overwrites all that it shows
    buffer.exported = false;
    const { size } = buffer.gpu;
    // Staging buffers are separate from those of tensors: they contain the last read.
    const key = buffer.origin === "staging" ? -size : size;
    const kind = this.#idle.get(key) ?? [];
    kind.push(buffer);
    if (key !== this.#last || kind.length === 1) {
      this.#idle.delete(key);
      this.#idle.set(key, kind);
      this.#last = key;
    }
    this.idleBytes += size;
    this.#used = true;
    if (this.idleBytes > BUDGET) this.#trim(BUDGET);
    this.#timer ??= this.#later();
  }

  drop(): void {
    this.#trim(0);
  }

  #trim(budget: number): void {
    for (const [key, kind] of this.#idle) {
      while (this.idleBytes > budget && kind.length > 0) {
        const { gpu } = kind.shift() as BufferRecord;
        this.idleBytes -= gpu.size;
        gpu.destroy();
      }
      if (kind.length === 0) this.#idle.delete(key);
    }
  }

  #later(): ReturnType<typeof setTimeout> {
    this.#used = false;
    const timer = setTimeout(() => {
      if (!this.#used) this.drop();
      this.#timer = this.idleBytes > 0 ? this.#later() : undefined;
    }, IDLE_MS);
    // Node would wait for it before exiting.
    (timer as { unref?: () => void }).unref?.();
    return timer;
  }
}

/** The pool of a device, made at the first call. */
export function poolOf(device: DeviceRecord): Pool {
  device.pool ??= new IdlePool();
  return device.pool;
}

// --- buffers for new tensors ------------------------------------------------------------------------

/** From this size on, error scopes watch creating and writing a buffer. */
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

/** A slot over a buffer that {@link obtain} gives: elements of `used` bytes, which may end within one. */
export function allocate(
  device: DeviceRecord,
  used: number,
  { usage = DEFAULT_USAGE, padTo, zeros }: AllocateOptions = {},
): LiveSlot {
  const buffer = obtain(device, Math.ceil(used), usage, padTo, zeros);
  try {
    return addSlot(device, buffer, { used });
  } catch (error) {
    dispose(device, buffer);
    throw error;
  }
}

/**
 * A buffer for `nbytes`, padded to a multiple of 16 bytes and never empty. Everything after
 * `nbytes` is 0, and with `zeros` all of it. The device works; the caller enters the buffer into the
 * table, or disposes of it.
 */
export function obtain(
  device: DeviceRecord,
  nbytes: number,
  usage: number,
  padTo = 16,
  zeros = false,
): BufferRecord {
  const { gpu, errors } = device;
  const size = Math.max(roundUp(nbytes, padTo), padTo);
  if (size > gpu.limits.maxBufferSize) throw tooLarge(device, size);
  const words = nbytes + (-nbytes & 3);
  const origin = usage === DEFAULT_USAGE ? "tensors" : "single";
  const idle = origin === "tensors" ? poolOf(device).take(size, origin, errors) : undefined;
  const end = zeros ? 0 : words;
  if (idle && idle.dirty > end) clear(device, idle, end);
  const buffer = idle ?? createBuffer(device, size, usage, origin);
  buffer.dirty = end;
  return buffer;
}

/** Words of a uniform that a kernel of ours reads, in a buffer that is only for them. */
export class Words {
  readonly buffer: BufferRecord;

  constructor(device: DeviceRecord, words: CopyOf<"uint32">) {
    this.buffer = obtain(device, words.byteLength, DEFAULT_USAGE);
    device.gpu.queue.writeBuffer(this.buffer.gpu, 0, words);
  }
}

/** A fresh buffer, all zeros. WebGPU reports asynchronously when it cannot create one. */
export function createBuffer(
  device: DeviceRecord,
  size: number,
  usage: number,
  origin: Origin,
  what = `${size} bytes`,
): BufferRecord {
  // Dawn in Node reports an invalid buffer before createBuffer() returns.
  const { errors, gpu } = device;
  // It can fail other than by losing the device because of unusual flags, or out of memory. The
  // error scopes that would report it cost more than a small upload.
  const filters = origin === "single" || size >= WATCHED ? CREATION_ERRORS : [];
  const operation = { what: `createBuffer for ${what}`, filters };
  const create = () => gpu.createBuffer({ size, usage });
  const { result, outcome: creation } = operate(device, operation, create);
  poolOf(device).created++;
  return newRecord(result, origin, { creation, errors });
}

/** Clears what the last tensor left in an idle buffer, from a word on. */
function clear({ gpu }: DeviceRecord, buffer: BufferRecord, from: number): void {
  const end = Math.min(roundUp(buffer.dirty, 4), buffer.gpu.size);
  try {
    // A clear command costs more than writing a few bytes.
    if (end - from <= 4 * ZEROS.length) {
      for (let at = from; at < end; at += ZEROS.length) {
        gpu.queue.writeBuffer(buffer.gpu, at, ZEROS, 0, Math.min(ZEROS.length, end - at));
      }
    } else {
      const encoder = gpu.createCommandEncoder();
      encoder.clearBuffer(buffer.gpu, from, end - from);
      gpu.queue.submit([encoder.finish()]);
    }
  } catch (error) {
    buffer.gpu.destroy();
    throw error;
  }
}
