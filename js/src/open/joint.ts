/**
 * Joins the answers of several requests for one range of a file, which may have been replaced
 * between them. RFC 9110 (15.3.7.3) allows that only where all have the same strong validator.
 * Without one, what came before is asked for again, and compared: all of it after a connection
 * broke, and its end where the server sends less at a time than was asked for. Then what is joined
 * is one version of the file, or an error.
 */
import { concat } from "../core/bytes.js";
import { UnsupportedError } from "../core/errors.js";
import { crc32 } from "./zip.js";

/** Bytes at the end of what came that are compared: fewer than an answer brings. */
const OVERLAP = 2048;

export class Joint {
  /** Where the bytes begin that were not handed out yet. */
  at: number;
  /** Where the next request begins: before `at` for what is compared. */
  place: number;
  /** The strong validator of all bytes that came; null: there is none. */
  #validator: string | null = null;
  /** The CRC-32 of these bytes, where no validator identifies them; null: not all are in it. */
  #sum: number | null = 0;
  #tail: Uint8Array = new Uint8Array(0);
  /** What is still to be compared, and with what. */
  #check: { left: number; sum: number; expected: number } | null = null;

  constructor(
    private readonly name: string,
    private readonly start: number,
  ) {
    this.at = start;
    this.place = start;
  }

  /**
   * Whether an answer from `place` on with that strong validator may be read; if not, a request from
   * the new `place` is needed.
   */
  accepts(validator: string | null): boolean {
    if (this.at === this.start) {
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
    this.place += old.length + part.length;
    if (check !== null) {
      check.sum = crc32(old, check.sum);
      check.left -= old.length;
      if (check.left > 0) return part;
      if (check.sum !== check.expected) this.#changed();
      this.#check = null;
    }
    if (this.#sum !== null) this.#sum = crc32(part, this.#sum);
    this.#tail = concat([this.#tail, part.subarray(-OVERLAP)]).subarray(-OVERLAP);
    this.at += part.length;
    return part;
  }

  /** The connection broke: the next request begins where what came can be compared. */
  broke(): void {
    if (this.#validator === null && this.#sum !== null) {
      this.place = this.start;
      const left = this.at - this.start;
      this.#check = left === 0 ? null : { left, sum: 0, expected: this.#sum };
    } else this.#compare(this.#validator === null ? this.#tail.length : 0);
  }

  /** An answer ended as it should, before the range did. */
  ended(): void {
    if (this.#check === null && this.#validator === null) this.#compare(this.#tail.length);
  }

  /** Whether what came is being compared. */
  get comparing(): boolean {
    return this.#check !== null;
  }

  /** All came. @throws if more came before */
  finish(): void {
    if (this.#check !== null) this.#changed();
  }

  /** Compares so many of the last bytes. */
  #compare(count: number): void {
    this.place = this.at - count;
    const expected = crc32(this.#tail.subarray(this.#tail.length - count));
    this.#check = count === 0 ? null : { left: count, sum: 0, expected };
  }

  #changed(): never {
    throw changed(this.name);
  }
}

/** The error for a file that was replaced, which no validator shows. */
export function changed(name: string): UnsupportedError {
  return new UnsupportedError(
    `${name} changed while it was read (it has no strong ETag, and other bytes than before): open it again`,
  );
}
