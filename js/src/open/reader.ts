/** Reads tensors of one file: several at once, or in turns if it can be read only from its start. */

import type { DType } from "../core/dtype.js";
import { DLPackError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { releasing } from "../core/releasing.js";
import type { Tensor } from "../core/tensor.js";
import { abortable } from "../exchange/produce.js";
import { Cursor } from "./cursor.js";
import type { Entry } from "./entry.js";
import { changed } from "./joint.js";
import { load } from "./load.js";
import type { OpenOptions } from "./options.js";
import { OVERHEAD, type Part, type Plan, partOf, planOf, runsIn } from "./parts.js";
import { anyOf, type Chunks, type Source } from "./source.js";
import { crc32, type Member, unpacked } from "./zip.js";

/** @internal The bytes of a file before its tensors: how many, and their CRC-32. */
export interface Head {
  readonly bytes: number;
  readonly sum: number;
}

/** @internal A tensor of a file; in a zip file, its entry, from whose start `start` counts. */
export interface Held extends Entry {
  readonly member?: Member | undefined;
}

/** A tensor that can be loaded. */
export type Loadable = Held & { readonly type: DType };

/** Bytes of blocks that are requested before they are needed, and of requests that parts share. */
const SMALL = 4 << 20;
/** Blocks that are requested before they are needed. */
const AHEAD = 4;

/** Files without ranges whose request is left open for the next tensor, the oldest first. */
const left = new Set<Reader>();
/** A browser has six connections to a host: with all of them left open, a request never starts. */
const LEFT = 4;

/** @internal */
export class Reader {
  /** Ends pending loads when the file is closed. */
  readonly #closing = new AbortController();
  readonly #shared: SharedReads;
  /** Reads of a source that cannot be read from any position take turns. */
  #turn: Promise<unknown> = Promise.resolve();
  closed = false;

  /** Takes over a source and, if that cannot be read from any position, the cursor after the header. */
  constructor(
    readonly source: Source,
    private cursor: Cursor | null = null,
    private readonly head: Head | null = null,
  ) {
    this.#shared = new SharedReads(source, this.#closing.signal);
    this.#leave();
  }

  /** @throws ReleasedError once it is closed */
  check(): void {
    if (this.closed) throw new ReleasedError(`${this.source.name} was closed`);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    left.delete(this);
    const closed = new ReleasedError(`${this.source.name} was closed`);
    this.#closing.abort(closed);
    this.cursor?.abort(closed);
    this.source.close();
  }

  /** Loads a tensor, or a part of it. */
  async load(entry: Loadable, what: string, options: OpenOptions): Promise<Tensor> {
    this.check();
    if (this.source.way === "any") return this.#load(entry, what, options, null);
    // One that is aborted before its turn need not wait for it.
    const before = this.#turn;
    const mine = abortable(before, options.signal).then(() =>
      this.#load(entry, what, options, null),
    );
    this.#turn = Promise.allSettled([before, mine]);
    return mine;
  }

  /** All of these tensors, with one request if they are contiguous. */
  async *all(
    entries: readonly Loadable[],
    whatIs: (entry: Loadable) => string,
    options: OpenOptions,
  ): AsyncGenerator<Tensor, void, undefined> {
    const [first, last] = [entries[0], entries.at(-1)];
    if (this.source.way !== "any" || !first || !last || first.member) {
      for (const entry of entries) yield await this.load(entry, whatIs(entry), options);
      return;
    }
    const { signal } = this.#closing;
    const end = last.start + last.nbytes;
    const cursor = Cursor.at(this.source, first.start, end, signal, options.signal);
    try {
      for (const entry of entries) {
        this.check();
        yield await this.#load(entry, whatIs(entry), options, cursor);
      }
    } finally {
      await cursor.close();
    }
  }

  /** @param shared - a cursor that is at the tensor, or before it; null: make one */
  async #load(
    entry: Loadable,
    what: string,
    options: OpenOptions,
    shared: Cursor | null,
  ): Promise<Tensor> {
    this.check();
    left.delete(this);
    const part = options.part === undefined ? null : partOf(entry, options.part, what);
    const { type, shape, columns } = part?.loaded ?? entry;
    const { nbytes } = part ?? entry;
    const failing = new AbortController();
    const signal = anyOf(failing.signal, this.#closing.signal, options.signal);
    let cursor: Cursor | null = null;
    // Loads take turns with the file's cursor: this one has it until it is done.
    const stop = () => this.cursor?.abort(signal.reason);
    try {
      signal.throwIfAborted();
      let chunks: Chunks;
      if (part && nbytes === 0) chunks = nothing();
      else if (part && this.source.way === "any" && !entry.member?.deflated) {
        const { remote = false, unversioned } = this.source;
        const plan = planOf(part, what, remote, options.whole, unversioned ? 1 : undefined);
        chunks = this.#blocks(entry, plan, what, signal);
      } else {
        const plan = part && this.#planOfAll(part, entry, what, options);
        cursor = shared ?? this.#cursorFor(entry, what, signal);
        if (cursor === this.cursor) {
          signal.addEventListener("abort", stop);
          if (cursor.position === 0) await this.#checkHead(cursor);
        }
        chunks = elementsIn(cursor, entry, plan, what, signal);
      }
      const coming = { what, type, shape, columns, total: nbytes };
      const tensor = await load(coming, chunks, { ...options, signal });
      return part ? releasing(tensor, () => tensor.slice(...part.view)) : tensor;
    } catch (error) {
      // An aborted read looks as if the file ended there.
      const reason = signal.aborted ? signal.reason : error;
      // The rest of a stream that was left in the middle is dropped.
      if (cursor !== null && cursor === this.cursor) this.#spoil(reason);
      failing.abort(reason); // blocks that were requested for later
      throw reason;
    } finally {
      signal.removeEventListener("abort", stop);
      if (cursor !== shared && cursor !== this.cursor) await cursor?.close();
      this.#leave();
    }
  }

  /** Leaves the request open if the file can be read again, and ends the oldest of too many. */
  #leave(): void {
    if (this.cursor === null || this.head === null || this.source.way !== "again") return;
    left.add(this);
    const [oldest] = left;
    if (left.size > LEFT) (oldest as Reader).#restart();
  }

  #restart(): void {
    left.delete(this);
    this.cursor?.abort(undefined);
    this.cursor = null;
  }

  /** The blocks of a part, of which some are requested before they are needed. */
  async *#blocks(entry: Held, plan: Plan, what: string, signal: AbortSignal): Chunks {
    const { source } = this;
    const origin = entry.start + (entry.member?.data ?? 0);
    const { length, count } = plan;
    const small = source.remote === true && length <= SMALL;
    const coming: [start: number, found: Promise<Uint8Array | null> | null][] = [];
    const next = async function* (): Chunks {
      const [start, found] = coming.shift() as (typeof coming)[number];
      const bytes = await found;
      if (bytes) yield* runsIn([bytes], plan);
      else yield* runsIn(range(source, start, start + length, what, signal), plan);
    };
    for (const place of plan.starts()) {
      const start = origin + place;
      const found = small ? this.#shared.take(start, start + length, signal, count > 1) : null;
      coming.push([start, found]);
      if (coming.length > AHEAD) yield* next();
    }
    while (coming.length > 0) yield* next();
    if (count > 1 && source.unversioned) throw changed(source.name);
  }

  /** How a part is read if everything before its last byte has to be. @throws if that was not asked for */
  #planOfAll(part: Part, { member, nbytes }: Held, what: string, { whole }: OpenOptions): Plan {
    const { remote, name } = this.source;
    if (remote && !whole && part.nbytes < nbytes) {
      const why = member
        ? `it is compressed in ${name}: all of it would be read`
        : `the server of ${name} does not support ranges: the whole file would be read`;
      throw new UnsupportedError(
        `${what}: a part of it cannot be read alone, as ${why}; set the option \`whole\` to do that`,
      );
    }
    return planOf(part, what, false, true, 1);
  }

  /** Throws unless a source that is read once more begins as before. */
  async #checkHead(cursor: Cursor): Promise<void> {
    if (this.head === null) return;
    const { bytes, sum } = this.head;
    const again = await cursor.take(bytes, "its header");
    if (crc32(again) !== sum) throw changed(this.source.name);
  }

  #spoil(reason: unknown): void {
    this.cursor?.abort(reason);
    this.cursor = null;
    if (this.source.way === "once") this.close();
  }

  /** A cursor at the tensor, or before it. */
  #cursorFor(entry: Held, what: string, signal: AbortSignal): Cursor {
    const { source } = this;
    const { member, start, nbytes } = entry;
    if (source.way === "any") {
      const [from, to] = member ? [member.header, member.limit] : [start, start + nbytes];
      return Cursor.at(source, from, to, signal);
    }
    if (this.cursor !== null && this.cursor.position > start) {
      if (source.way === "once") {
        throw new DLPackError(
          `${source.name} is past ${what} and can be read only once: ask for tensors in the order of names, ` +
            "or open its Blob (await response.blob())",
        );
      }
      this.#restart();
    }
    this.cursor ??= Cursor.at(source, 0);
    return this.cursor;
  }
}

async function* nothing(): Chunks {}

/** Exactly these bytes of a source. */
async function* range(
  source: Source,
  start: number,
  end: number,
  what: string,
  signal: AbortSignal,
): Chunks {
  const cursor = Cursor.at(source, start, end, signal);
  try {
    yield* cursor.chunks(end - start, what);
  } finally {
    await cursor.close();
  }
}

/**
 * The elements of a tensor, or the part of a plan of one block, from a cursor that is at them or
 * before; of an entry of a zip file all is read, and compared with its sum.
 */
async function* elementsIn(
  cursor: Cursor,
  { member, start, nbytes }: Held,
  plan: Plan | null,
  what: string,
  signal: AbortSignal,
): Chunks {
  const inner = member ? new Cursor(what, 0, unpacked(cursor, member, signal)) : cursor;
  try {
    const first = plan === null ? 0 : (plan.starts().next().value as number);
    await inner.skipTo(start + first, what);
    const chunks = inner.chunks(plan?.length ?? nbytes, what);
    yield* plan === null ? chunks : runsIn(chunks, plan);
    if (!member) return;
    await inner.skipTo(start + nbytes, what);
    await inner.atEnd(); // where sizes and sums are compared
  } finally {
    if (member) await inner.close();
  }
}

/** A range of a file that is waited for. */
interface Wanted {
  readonly start: number;
  readonly end: number;
  /** Whether it is not read by the caller if it is alone. */
  readonly eager: boolean;
  readonly signal: AbortSignal;
  resolve(bytes: Uint8Array | null): void;
  reject(error: unknown): void;
}

/**
 * Ranges that are asked for at the same time share requests, where they are near each other: what
 * lies between costs less than another request.
 */
class SharedReads {
  #waiting: Wanted[] = [];

  constructor(
    private readonly source: Source,
    private readonly closing: AbortSignal,
  ) {}

  /**
   * The bytes of a range; null, unless `eager`: no other range is near, so the caller reads it chunk by
   * chunk.
   */
  take(
    start: number,
    end: number,
    signal: AbortSignal,
    eager: boolean,
  ): Promise<Uint8Array | null> {
    const found = new Promise<Uint8Array | null>((resolve, reject) => {
      // Several tasks of Python are several turns of the event loop.
      if (this.#waiting.length === 0) setTimeout(() => this.#read(), 0);
      this.#waiting.push({ start, end, eager, signal, resolve, reject });
    });
    const bytes = abortable(found, signal);
    bytes.catch(() => {}); // nobody waits for it after an error of an earlier one
    return bytes;
  }

  #read(): void {
    const waiting = this.#waiting.filter(({ signal }) => !signal.aborted);
    this.#waiting = [];
    waiting.sort((a, b) => a.start - b.start || a.end - b.end);
    while (waiting.length > 0) {
      const group = [waiting.shift() as Wanted];
      const start = (group[0] as Wanted).start;
      let { end } = group[0] as Wanted;
      for (;;) {
        const next = waiting[0];
        if (!next || next.start > end + OVERHEAD || next.end - start > SMALL) break;
        group.push(next);
        end = Math.max(end, next.end);
        waiting.shift();
      }
      if (group.length === 1 && !group[0]?.eager) group[0]?.resolve(null);
      else void this.#share(group, start, end);
    }
  }

  async #share(group: readonly Wanted[], start: number, end: number): Promise<void> {
    const cursor = Cursor.at(this.source, start, end, this.closing);
    const given = () => {
      if (group.every(({ signal }) => signal.aborted)) cursor.abort(group[0]?.signal.reason);
    };
    for (const { signal } of group) signal.addEventListener("abort", given);
    try {
      const bytes = await cursor.take(end - start, "the elements of tensors");
      for (const { start: from, end: to, resolve } of group) {
        resolve(bytes.subarray(from - start, to - start));
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      for (const { signal } of group) signal.removeEventListener("abort", given);
      await cursor.close();
    }
  }
}
