import type { BufferRecord, Origin } from "../errors/record.js";

/** Bytes of idle buffers that a device keeps; beyond, the least recently used go first. */
const BUDGET = 256 << 20;
/** After so long without use, all are destroyed. */
const IDLE_MS = 10_000;

/**
 * Whether an idle buffer is presumably usable. If no error scope watched its creation, or foreign
 * code has had it, any later error of the device may mean that it is invalid.
 */
export function isSound(record: BufferRecord, now: number): boolean {
  const { making, work, exposed, errors } = record;
  if (making?.fault || work.some(({ outcome }) => outcome.fault)) return false;
  return errors === now || (making?.fault === null && !exposed);
}

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
    for (let facts = kind?.pop(); facts !== undefined; facts = kind?.pop()) {
      this.idleBytes -= size;
      this.#used = true;
      if (isSound(facts, errors)) {
        this.reused++;
        return facts;
      }
      if (!facts.taken) facts.buffer.destroy();
    }
    return undefined;
  }

  /** Takes a buffer that is no longer used except by queued work, which keeps its order. */
  give(facts: BufferRecord): void {
    const { size } = facts.buffer;
    // Staging buffers are separate from those of tensors: they contain the last read.
    const key = facts.origin === "staging" ? -size : size;
    const kind = this.#idle.get(key) ?? [];
    kind.push(facts);
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
        const { buffer } = kind.shift() as BufferRecord;
        this.idleBytes -= buffer.size;
        buffer.destroy();
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
