/**
 * Joins the answers of several requests for one range of a file, which may have been replaced
 * between them. RFC 9110 (15.3.7.3) allows that only where all have the same strong validator.
 * Without one, what came before is asked for again, and compared: all of it after a connection
 * broke, and its end where the server sends less at a time than was asked for. Then what is joined
 * is one version of the file, or an error.
 */
import { UnsupportedError } from "../core/errors.js";
import { crc32 } from "./crc.js";

/** Bytes at the end of what came that are compared. */
const OVERLAP = 4096;

export class Joint {
  /** Where the bytes begin that were not handed out yet. */
  at: number;
  /** Where the next request begins: before `at` for what is compared. */
  place: number;
  readonly #name: string;
  readonly #start: number;
  /** The strong validator of all bytes that came; null: there is none. */
  #validator: string | null = null;
  /** The CRC-32 of these bytes, for the want of a validator; null: not all are in it. */
  #sum: number | null = 0;
  #tail: Uint8Array = new Uint8Array(0);
  /** Bytes that the current answer has brought. */
  #came = 0;
  /** What is still to be compared, and with what. */
  #check: { left: number; sum: number; expected: number } | null = null;
  /** Sums of the file up to some places, of earlier reads from its start. */
  readonly #known: Map<number, number> | null;

  constructor(name: string, start: number, known: Map<number, number> | null = null) {
    this.#name = name;
    this.#start = start;
    this.at = start;
    this.place = start;
    this.#known = known;
  }

  /**
   * Whether an answer from `place` on may be read; if not, a request from the new `place` is
   * needed.
   *
   * @param validator - its strong validator, or null
   */
  accepts(validator: string | null): boolean {
    this.#came = 0;
    if (this.at === this.#start) {
      this.#validator = validator;
      this.#sum = validator === null ? 0 : null;
      return true;
    }
    if (this.#validator === null || this.#validator === validator) return true;
    this.#validator = null;
    this.#compare(this.#tail.length);
    return false;
  }

  /** The part of the next bytes that is new, of at most `most`. @throws if the file changed */
  take(chunk: Uint8Array, most: number): Uint8Array {
    const check = this.#check;
    const old = chunk.subarray(0, check?.left ?? 0);
    const part = chunk.subarray(old.length).subarray(0, most);
    this.#came += chunk.length;
    this.place += old.length + part.length;
    if (check !== null) {
      check.sum = crc32(old, check.sum);
      check.left -= old.length;
      if (check.left > 0) return part;
      if (check.sum !== check.expected) this.#changed();
      this.#check = null;
    }
    if (this.#sum !== null) this.#sum = this.#summed(part, this.#sum);
    const end = part.subarray(-OVERLAP);
    const tail = new Uint8Array(Math.min(this.#tail.length + end.length, OVERLAP));
    tail.set(this.#tail.subarray(this.#tail.length + end.length - tail.length));
    tail.set(end, tail.length - end.length);
    this.#tail = tail;
    this.at += part.length;
    return part;
  }

  /** The sum of all bytes, compared with that of earlier reads. */
  #summed(part: Uint8Array, before: number): number {
    for (const [end, expected] of this.#known ?? []) {
      const count = end - this.at;
      if (count <= 0 || count > part.length) continue;
      if (crc32(part.subarray(0, count), before) !== expected) this.#changed();
    }
    return crc32(part, before);
  }

  /** The connection broke: the next request begins where what came can be compared. */
  broke(): void {
    if (this.#validator === null && this.#sum !== null) {
      this.place = this.#start;
      const left = this.at - this.#start;
      this.#check = left === 0 ? null : { left, sum: 0, expected: this.#sum };
    } else this.#compare(this.#validator === null ? this.#tail.length : 0);
  }

  /** An answer ended as it should, before the range did. */
  ended(): void {
    if (this.#check === null && this.#validator === null) {
      this.#compare(Math.min(this.#tail.length, this.#came >> 1));
    }
  }

  /** Whether what came is being compared. */
  get comparing(): boolean {
    return this.#check !== null;
  }

  /** All came. @throws if more came before */
  finish(): void {
    if (this.#check !== null) this.#changed();
  }

  /** Keeps the sum for later reads. */
  close(): void {
    if (this.#sum !== null && this.at > this.#start) this.#known?.set(this.at, this.#sum);
  }

  /** Compares so many of the last bytes. */
  #compare(count: number): void {
    this.place = this.at - count;
    const expected = crc32(this.#tail.subarray(this.#tail.length - count));
    this.#check = count === 0 ? null : { left: count, sum: 0, expected };
  }

  #changed(): never {
    throw new UnsupportedError(
      `${this.#name} changed while it was read (it has no strong ETag, and other bytes than before): ` +
        "open it again",
    );
  }
}
