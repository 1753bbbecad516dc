import type { DType, DTypeName } from "../core/dtype.js";
import { bounded, cut, DLPackError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { checkOptions } from "../core/options.js";
import type { Tensor } from "../core/tensor.js";
import { crc32 } from "./crc.js";
import { Cursor } from "./cursor.js";
import type { Entry } from "./entry.js";
import { changed } from "./joint.js";
import { load } from "./load.js";
import { LOAD_NAMES, type LoadOptions, type OpenOptions } from "./options.js";
import { abortable, LinkedSignal } from "./signals.js";
import type { Source } from "./source.js";
import { enter, type Member, unpacked } from "./zip.js";

// Well-known in newer engines only; Symbol.for keeps the method reachable by name elsewhere.
const dispose: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** A file's description of one of its tensors, before it is loaded. */
export interface TensorInfo {
  /**
   * Of a tensor whose dtype this library lacks, the file's name for it ("F4", "<U3"), and
   * "unreadable" for an array of an archive whose header cannot be read: loading it throws; the
   * other tensors of the file are not affected.
   */
  readonly dtype: DTypeName | (string & {});
  readonly shape: readonly number[];
  /** Bytes of its elements. */
  readonly nbytes: number;
}

/** @internal The bytes of a file before its tensors: how many, and their CRC-32. */
export interface Head {
  readonly bytes: number;
  readonly sum: number;
}

/** @internal A tensor of a file; in a zip file, its entry, from whose start `start` counts. */
export interface Held extends Entry {
  readonly member?: Member | undefined;
}

/**
 * A file of several tensors (safetensors, npz), each loaded on request.
 *
 * ```js
 * using weights = await open("model.safetensors", { device });
 * for (const name of weights.names) console.log(name, weights.info(name).shape);
 * const bias = await weights.get("bias");   // a Tensor, which the caller releases
 * for await (const [name, tensor] of weights) console.log(name, tensor.shape); // all, with one request
 * ```
 *
 * Tensors stay valid when the file is closed.
 */
export class TensorFile implements AsyncIterable<[name: string, tensor: Tensor]> {
  /** The names of the tensors, in the order of the file. */
  readonly names: readonly string[];
  /** The file's metadata: `__metadata__` of safetensors. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly #source: Source;
  readonly #entries: ReadonlyMap<string, Held>;
  readonly #options: OpenOptions;
  readonly #head: Head | null;
  /** Ends pending loads when the file is closed. */
  readonly #closing = new AbortController();
  /** The position in a source that cannot be read from any position. */
  #cursor: Cursor | null;
  /** Reads of such a source take turns. */
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  /** @internal Takes over the source, and the cursor after the header. */
  constructor(
    source: Source,
    cursor: Cursor | null,
    entries: readonly Held[],
    metadata: Readonly<Record<string, string>>,
    options: OpenOptions,
    head: Head | null = null,
  ) {
    this.#head = head;
    this.#source = source;
    this.#cursor = cursor;
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.#options = options;
    this.names = Object.freeze([...this.#entries.keys()]);
    this.metadata = Object.freeze(metadata);
  }

  /** Its source's name, for messages. */
  get name(): string {
    return this.#source.name;
  }

  /** Number of tensors. */
  get size(): number {
    return this.#entries.size;
  }

  /** Whether the file was closed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Whether it has a tensor of that name. */
  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /**
   * The description of a tensor, without reading its elements.
   *
   * @throws RangeError for an unknown name
   */
  info(name: string): TensorInfo {
    const { type, shape, nbytes } = this.#entry(name);
    return { dtype: typeof type === "string" ? type : type.name, shape, nbytes };
  }

  /**
   * Loads a tensor, which the caller releases: a new one each time.
   *
   * @param options - override those that the file was opened with
   * @throws RangeError for an unknown name; ReleasedError once it is closed; UnsupportedError for a
   * dtype that this library lacks, for malformed files, and if a stream is past the tensor
   */
  async get<D extends DTypeName = DTypeName>(
    name: string,
    options: LoadOptions<D> = {},
  ): Promise<Tensor<D>> {
    checkOptions<LoadOptions & Pick<OpenOptions, "place">>(options, "get()", LOAD_NAMES, "device");
    const entry = this.#entry(name);
    this.#check();
    const all = { ...this.#options, ...options };
    if (this.#source.way === "any") return this.#load(entry, all, null) as Promise<Tensor<D>>;
    // One that is aborted before its turn need not wait for it.
    const before = this.#turn;
    const mine = abortable(before, all.signal).then(() => this.#load(entry, all, null));
    this.#turn = Promise.allSettled([before, mine]);
    return mine as Promise<Tensor<D>>;
  }

  /**
   * All tensors, in the order of `names`; the caller releases them.
   *
   * @throws UnsupportedError, before any is loaded, if one of them cannot be: load the others by name
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<[name: string, tensor: Tensor], void, undefined> {
    for (const entry of this.#entries.values()) this.#typeOf(entry);
    const whole = this.#source.way === "any" && this.#whole();
    if (!whole) {
      for (const name of this.names) yield [name, await this.get(name)];
      return;
    }
    const linked = new LinkedSignal([this.#closing.signal, this.#options.signal]);
    const cursor = Cursor.at(this.#source, whole.start, whole.end, linked.signal);
    try {
      for (const entry of this.#entries.values()) {
        this.#check();
        yield [entry.name, await this.#load(entry, this.#options, cursor)];
      }
    } finally {
      linked.stop();
      await cursor.close();
    }
  }

  /** The byte range of all tensors, if they are contiguous and not compressed. */
  #whole(): { start: number; end: number } | null {
    const entries = [...this.#entries.values()];
    const [first, last] = [entries[0], entries.at(-1)];
    if (!first || !last || first.member) return null;
    return { start: first.start, end: last.start + last.nbytes };
  }

  /** Closes the file and ends pending loads. Tensors stay valid. Further calls do nothing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const closed = new ReleasedError(`${this.#source.name} was closed`);
    this.#closing.abort(closed);
    this.#cursor?.abort(closed);
    this.#source.close();
  }

  [dispose](): void {
    this.close();
  }

  #check(): void {
    if (this.#closed) throw new ReleasedError(`${this.#source.name} was closed`);
  }

  #entry(name: string): Held {
    const entry = this.#entries.get(name);
    if (entry) return entry;
    const names = this.names.slice(0, 20).map((each) => cut(each, 80));
    const known = names.join(", ") + (this.size > 20 ? ", …" : "");
    throw new RangeError(
      bounded(`${this.#source.name} has no tensor "${cut(name)}"; it has ${known || "none"}`),
    );
  }

  #whichIs({ name }: Held): string {
    return `tensor "${cut(name)}" of ${this.#source.name}`;
  }

  #typeOf(entry: Held): DType {
    const { type, why } = entry;
    if (typeof type !== "string") return type;
    const others = "other tensors of the file can be loaded by name";
    const message = bounded(`${this.#whichIs(entry)} ${why}`);
    throw new UnsupportedError(`${message}; ${others}`, { given: type });
  }

  /** @internal Why a tensor cannot be loaded; "" if it can, as far as is known. */
  _why(name: string): string {
    return this.#entry(name).why ?? "";
  }

  /** @param shared - a cursor that is at the tensor, or before it; null: make one */
  async #load(entry: Held, options: OpenOptions, shared: Cursor | null): Promise<Tensor> {
    this.#check();
    const { start, nbytes, member, shape, columns } = entry;
    const type = this.#typeOf(entry);
    const what = this.#whichIs(entry);
    const linked = new LinkedSignal([this.#closing.signal, options.signal]);
    const { signal } = linked;
    const [from, to] = member ? [member.header, member.limit] : [start, start + nbytes];
    let cursor = shared;
    try {
      signal.throwIfAborted();
      cursor ??= this.#cursorFor(from, to, what, signal);
      if (cursor === this.#cursor) {
        if (cursor.position === 0) await this.#checkHead(cursor);
        await cursor.skipTo(from, what);
      }
      const chunks = member ? elementsIn(cursor, entry, what, signal) : cursor.chunks(nbytes, what);
      const coming = { what, type, shape, columns, total: nbytes };
      return await load(coming, chunks, { ...options, signal });
    } catch (error) {
      // An aborted read looks as if the file ended there.
      const reason = signal.aborted ? signal.reason : error;
      // The rest of a stream that was left in the middle is dropped.
      if (cursor !== null && cursor === this.#cursor) this.#spoil(reason);
      throw reason;
    } finally {
      linked.stop();
      if (cursor !== shared && cursor !== this.#cursor) await cursor?.close();
    }
  }

  /** Throws unless a source that is read once more begins as before. */
  async #checkHead(cursor: Cursor): Promise<void> {
    if (this.#head === null) return;
    const { bytes, sum } = this.#head;
    const again = await cursor.take(bytes, "its header");
    if (crc32(again) !== sum) throw changed(this.#source.name);
  }

  #spoil(reason: unknown): void {
    this.#cursor?.abort(reason);
    this.#cursor = null;
    if (this.#source.way === "once") this.close();
  }

  /** A cursor at `from`, or before. */
  #cursorFor(from: number, to: number, what: string, signal: AbortSignal): Cursor {
    const source = this.#source;
    if (source.way === "any") return Cursor.at(source, from, to, signal);
    if (this.#cursor !== null && this.#cursor.position > from) {
      if (source.way === "once") {
        throw new DLPackError(
          `${source.name} is past ${what} and can be read only once: ask for tensors in the order of names, ` +
            "or open its Blob (await response.blob())",
        );
      }
      this.#cursor.abort(undefined);
      this.#cursor = null;
    }
    this.#cursor ??= Cursor.at(source, 0);
    const cursor = this.#cursor;
    // Loads take turns with it: this one has it until it is done.
    (signal as unknown as EventTarget).addEventListener("abort", () => cursor.abort(signal.reason));
    return cursor;
  }
}

/** The elements of a tensor in a zip file, after its header; reads all of the entry. */
async function* elementsIn(cursor: Cursor, entry: Held, what: string, signal: AbortSignal) {
  const member = entry.member as Member;
  await enter(cursor, member);
  const inner = new Cursor(what, 0, unpacked(cursor, member, signal));
  try {
    await inner.skipTo(entry.start, what);
    yield* inner.chunks(entry.nbytes, what);
    await inner.atEnd(); // where sizes and sums are compared
  } finally {
    await inner.close();
  }
}
