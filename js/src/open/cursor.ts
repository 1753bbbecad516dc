import { concat } from "../core/bytes.js";
import { malformed } from "./entry.js";
import { anyOf, type Chunks, type Signals, type Source } from "./source.js";

/** Reads requested sizes from chunks of any size, and tracks its position. */
export class Cursor {
  #left: Uint8Array = NOTHING;

  constructor(
    readonly name: string,
    /** Bytes from the start of the source that were taken. */
    public position: number,
    private readonly source: Chunks,
    private readonly controller?: AbortController,
  ) {}

  static at(source: Source, start: number, end?: number, ...signals: Signals): Cursor {
    const controller = new AbortController();
    const chunks = source.read(start, end, anyOf(controller.signal, ...signals));
    return new Cursor(source.name, start, chunks, controller);
  }

  /** Peeks at the next `count` bytes; fewer at the end. */
  async peek(count: number): Promise<Uint8Array> {
    if (this.#left.length < count) {
      const parts = [this.#left.slice()];
      let length = this.#left.length;
      while (length < count) {
        const { done, value } = await this.source.next();
        if (done) break;
        parts.push(value.slice()); // the source may reuse the memory of its chunks
        length += value.length;
      }
      this.#left = concat(parts);
    }
    return this.#left.subarray(0, count);
  }

  /** The next `count` bytes; UnsupportedError if the source ends before. */
  async take(count: number, what: string): Promise<Uint8Array> {
    const found = await this.peek(count);
    if (found.length < count) this.#ended(found.length, count, what);
    this.#left = this.#left.subarray(count);
    this.position += count;
    return found;
  }

  /** The next bytes in chunks; each is valid until the next is requested. */
  async *chunks(count: number, what: string): Chunks {
    for (let missing = count; missing > 0; ) {
      let chunk = this.#left;
      this.#left = NOTHING;
      if (chunk.length === 0) {
        const { done, value } = await this.source.next();
        if (done) this.#ended(0, missing, what);
        chunk = value as Uint8Array;
      }
      if (chunk.length > missing) {
        this.#left = chunk.subarray(missing);
        chunk = chunk.subarray(0, missing);
      }
      missing -= chunk.length;
      this.position += chunk.length;
      yield chunk;
    }
  }

  /** The rest, in chunks. */
  async *rest(): Chunks {
    const left = this.#left;
    this.#left = NOTHING;
    this.position += left.length;
    if (left.length > 0) yield left;
    for await (const chunk of this.source) {
      this.position += chunk.length;
      yield chunk;
    }
  }

  /** Skips to a later position. */
  async skipTo(position: number, what: string): Promise<void> {
    for await (const _ of this.chunks(position - this.position, what));
  }

  /** Whether this is the end. */
  async atEnd(): Promise<boolean> {
    return (await this.peek(1)).length === 0;
  }

  /** Aborts: pending reads of the source reject with the reason. */
  abort(reason: unknown): void {
    this.controller?.abort(reason);
    this.close().catch(() => {});
  }

  /** Releases its source. */
  async close(): Promise<void> {
    this.#left = NOTHING;
    await this.source.return();
  }

  #ended(found: number, count: number, what: string): never {
    throw malformed(
      this.name,
      `it ends after ${this.position + found} bytes, within ${what}, which needs ${count - found} more`,
      undefined,
      true,
    );
  }
}

const NOTHING = new Uint8Array(0);
