import { type BufferRecord, isReusable, type Origin } from "../errors/record.js";

/** Bytes of idle buffers that a device keeps; beyond, the least recently used go first. */
const BUDGET = 256 << 20;
/** After so long without use, all are destroyed. */
const IDLE_MS = 10_000;

/** Idle buffers by purpose and size, the most recently used kind at the end. */
export class Pool {
  /** Bytes of the idle buffers. */
  idleBytes = 0;
  created = 0;
  reused = 0;
  readonly #idle = new Map<number, BufferRecord[]>();
  /** The one at the end. */
  #last: number | undefined;
  #used = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * An idle buffer of exactly this size, with its old contents; undefined if there is none.
   *
   * @param errors - errors of the device so far: buffers that may be affected are destroyed
   */
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

  /** Takes a buffer that is no longer used except by queued work, which keeps its order. */
  give(buffer: BufferRecord): void {
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

  /** Destroys every idle buffer. */
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
export function poolOf(device: { pool: Pool | null }): Pool {
  device.pool ??= new Pool();
  return device.pool;
}
