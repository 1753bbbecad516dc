import { type DTypeName, dtypeNamed } from "../core/dtype.js";
import { bounded, cut, UnsupportedError } from "../core/errors.js";
import { checkOptions } from "../core/options.js";
import { dispose } from "../core/symbols.js";
import type { Tensor } from "../core/tensor.js";
import { isRaw } from "./dtypes.js";
import { nbytesOf } from "./entry.js";
import { LOAD_NAMES, type LoadOptions, type OpenOptions } from "./options.js";
import { partOf } from "./parts.js";
import type { Held, Loadable, Reader } from "./reader.js";

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

/** @internal The tensors of one file, and what reads them. */
export interface Contents {
  readonly reader: Reader;
  readonly entries: readonly Held[];
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
  readonly #name: string;
  readonly #contents: readonly Contents[];
  readonly #entries: ReadonlyMap<string, { reader: Reader; entry: Held }>;
  readonly #options: OpenOptions;

  /** @internal Takes over the readers. */
  constructor(
    name: string,
    contents: readonly Contents[],
    metadata: Readonly<Record<string, string>>,
    options: OpenOptions,
  ) {
    this.#name = name;
    this.#contents = contents;
    const entries = contents.flatMap(({ reader, entries }) =>
      entries.map((entry) => [entry.name, { reader, entry }] as const),
    );
    this.#entries = new Map(entries);
    this.#options = { ...options };
    this.names = Object.freeze([...this.#entries.keys()]);
    this.metadata = Object.freeze(metadata);
  }

  /** Number of tensors. */
  get size(): number {
    return this.#entries.size;
  }

  /** Its source's name, for messages. */
  get name(): string {
    return this.#name;
  }

  /** Whether the file was closed. */
  get closed(): boolean {
    return this.#contents.some(({ reader }) => reader.closed);
  }

  /**
   * Whether it has a tensor of that name.
   *
   * @param name - any string
   */
  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /**
   * The description of a tensor, or of a part of it, without reading its elements.
   *
   * @param name - one of `names`
   * @param options - `part`, as for `load`
   * @throws RangeError for an unknown name
   */
  info(name: string, { part }: Pick<LoadOptions, "part"> = {}): TensorInfo {
    const { entry } = this.#entry(name);
    const { type, shape, nbytes } = entry;
    if (part === undefined) {
      return { dtype: typeof type === "string" ? type : type.name, shape: [...shape], nbytes };
    }
    const found = partOf(this.#loadable(entry, this.#options.dtype), part, this.#whichIs(entry));
    return { dtype: found.loaded.type.name, shape: found.shape, nbytes: found.nbytes };
  }

  /**
   * Loads a tensor or, with `part`, a part of it, which the caller releases: a new one each time. Only
   * the bytes of a part are read. Parts that are asked for at the same time share requests.
   *
   * ```js
   * const rows = await weights.load("embedding", { part: [[1000, 2000]] });
   * ```
   *
   * @param name - one of `names`
   * @param options - override those that the file was opened with
   * @throws RangeError for an unknown name; ReleasedError once it is closed; UnsupportedError for a
   * dtype that this library lacks, for malformed files, if a stream is past the tensor, and for a
   * part that cannot be read alone, unless `whole` is set
   */
  async load<D extends DTypeName = DTypeName>(
    name: string,
    options: LoadOptions<D> = {},
  ): Promise<Tensor<D>> {
    checkOptions<LoadOptions & Pick<OpenOptions, "place">>(options, "load()", LOAD_NAMES, "device");
    const { reader, entry } = this.#entry(name);
    reader.check();
    const all = { ...this.#options, ...options };
    const loadable = this.#loadable(entry, all.dtype);
    return reader.load(loadable, this.#whichIs(entry), all) as Promise<Tensor<D>>;
  }

  /**
   * Loads a tensor in parts, for one that is larger than the memory or than a buffer of the GPU:
   * consecutive rows, which the caller releases.
   *
   * @param name - one of `names`
   * @param options - those of `load`, and the bytes in the file that a part has at most; default
   * 128 MiB, which every device can bind
   * @throws UnsupportedError if one row has more bytes
   */
  async *parts<D extends DTypeName = DTypeName>(
    name: string,
    options: Omit<LoadOptions<D>, "part"> & { nbytes?: number } = {},
  ): AsyncGenerator<Tensor<D>, void, undefined> {
    const { nbytes = 1 << 27, ...others } = options;
    if ("part" in others) throw new TypeError('parts() has no option "part": use load()');
    const { shape, nbytes: all } = this.info(name);
    const [rows = 1] = shape;
    const isOne = all <= nbytes || shape.includes(0);
    const count = isOne ? Math.max(rows, 1) : Math.floor((nbytes * rows) / all);
    if (!(count >= 1)) {
      throw new UnsupportedError(
        `${this.#whichIs(this.#entry(name).entry)}: one row has ${all / rows} bytes, more than ${nbytes}; load ` +
          "parts with a range for each axis",
        { given: all / rows, needed: nbytes },
      );
    }
    for (let first = 0; first < Math.max(rows, 1); first += count) {
      const part = shape.length > 0 ? [[first, first + count] as const] : [];
      yield await this.load<D>(name, { ...others, part });
    }
  }

  /**
   * The same as {@link TensorFile.load}.
   *
   * @param name - one of `names`
   * @param options - as for `load`
   */
  get<D extends DTypeName = DTypeName>(
    name: string,
    options: LoadOptions<D> = {},
  ): Promise<Tensor<D>> {
    return this.load(name, options);
  }

  /**
   * All tensors, in the order of `names`; the caller releases them.
   *
   * @throws UnsupportedError, before any is loaded, if one of them cannot be: load the others by name
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<[name: string, tensor: Tensor], void, undefined> {
    const options = this.#overAll();
    const all = this.#contents.map(({ reader, entries }) => ({
      reader,
      entries: entries.map((entry) => this.#loadable(entry, options.dtype)),
    }));
    for (const { reader, entries } of all) {
      let at = 0;
      for await (const tensor of reader.all(entries, (entry) => this.#whichIs(entry), options)) {
        const { name, nbytes } = entries[at++] as Held;
        options.done += nbytes;
        yield [name, tensor];
      }
    }
  }

  /** Options that report the progress of a sharded model over all of its tensors. */
  #overAll(): OpenOptions & { done: number } {
    const { progress } = this.#options;
    const options = { ...this.#options, done: 0 };
    if (progress === undefined || this.#contents.length === 1) return options;
    let total = 0;
    for (const { entry } of this.#entries.values()) total += entry.nbytes;
    return Object.assign(options, {
      progress: (loaded: number) => progress(options.done + loaded, total),
    });
  }

  /** Closes the file and ends pending loads. Tensors stay valid. Further calls do nothing. */
  close(): void {
    for (const { reader } of this.#contents) reader.close();
  }

  [dispose](): void {
    this.close();
  }

  #entry(name: string): { reader: Reader; entry: Held } {
    const found = this.#entries.get(name);
    if (found) return found;
    const names = this.names.slice(0, 20).map((each) => cut(each, 80));
    const known = names.join(", ") + (this.size > 20 ? ", …" : "");
    throw new RangeError(
      bounded(`${this.name} has no tensor "${cut(name)}"; it has ${known || "none"}`),
    );
  }

  #whichIs({ name }: Held): string {
    return `tensor "${cut(name)}" of ${this.name}`;
  }

  #loadable(entry: Held, dtype: DTypeName | undefined): Loadable {
    const { type, why } = entry;
    if (typeof type !== "string") return entry as Loadable;
    const raw = dtype && dtypeNamed(dtype);
    if (
      raw &&
      entry.member &&
      isRaw(type, raw) &&
      nbytesOf({ ...entry, type: raw }) === entry.nbytes
    ) {
      return { ...entry, type: raw };
    }
    const others = "other tensors of the file can be loaded by name";
    const message = bounded(`${this.#whichIs(entry)} ${why}`);
    throw new UnsupportedError(`${message}; ${others}`, { given: type });
  }

  /** @internal How many files it has. */
  get _shards(): number {
    return this.#contents.length;
  }

  /** @internal Why a tensor cannot be loaded; "" if it can, as far as is known. */
  _why(name: string): string {
    return this.#entry(name).entry.why ?? "";
  }
}
