/** The receiving half of an endpoint: tensors that the other side writes. */

import { Tensor, UnsupportedError } from "dlpack-web/core";
import { type DType, emptyOn, type GPUDevice } from "dlpack-web/internal";
import { releasing } from "../common.js";
import { cut, nbytesOf, type Piece } from "./frame.js";
import { Spans } from "./spans.js";

/** Versions of a tensor that may be incomplete at once: senders wait, receivers refuse more. */
export const MOST_VERSIONS = 1024;
/**
 * Tensors that a peer may make us keep, gaps among those that it freed, and entries about what is
 * incomplete.
 */
const [MOST_TENSORS, MOST_GAPS, MOST_ENTRIES] = [8192, 16384, 65536];

/** A tensor after a write to it has arrived completely. */
export interface Received {
  readonly name: string;
  readonly id: number;
  readonly version: number;
  /** The bytes that this version wrote. */
  readonly begin: number;
  readonly end: number;
  /**
   * The endpoint's: valid until another one of that name has arrived, the other side frees it, or
   * `close()`.
   */
  readonly tensor: Tensor;
}

class Incoming {
  readonly id: number;
  readonly name: string;
  readonly #type: DType;
  readonly #shape: readonly number[];
  /** All elements along one axis. */
  readonly #flat: Tensor;
  /** Versions by byte. */
  readonly #written = new Spans();
  /** All versions up to this one are complete. */
  settled = 0;
  /** Later ones that are complete. */
  readonly #done = new Set<number>();
  /** What incomplete versions write, and up to where they have. */
  readonly #pending = new Map<number, readonly [begin: number, end: number, at: number]>();
  /** Up to here each byte was written. */
  #filled = 0;
  /** Versions that are complete while other bytes were never written. */
  #early: Received[] = [];

  constructor(
    { id, name, type, shape }: Piece,
    readonly nbytes: number,
    private readonly tensor: Tensor,
  ) {
    this.id = id;
    this.name = name;
    this.#type = type;
    this.#shape = shape;
    this.#flat = tensor.reshape([tensor.size]);
  }

  get entries(): number {
    return this.#written.count + this.#done.size + this.#pending.size + this.#early.length;
  }

  /** Throws for a piece of another tensor, or of another write with its version. */
  check(piece: Piece): void {
    const isSame = this.name === piece.name && this.#type === piece.type;
    if (!isSame || `${this.#shape}` !== `${piece.shape}`) {
      const is = `"${cut(this.name, 200)}", ${this.#type.name}[${this.#shape}]`;
      throw refusal(piece, `id ${piece.id} is of ${is}, for ever`);
    }
    const { version } = piece;
    const [begin, end] = this.#pending.get(version) ?? [piece.begin, piece.end];
    if (begin === piece.begin && end === piece.end) return;
    throw refusal(piece, `version ${version} writes ${begin} to ${end}`);
  }

  isComplete(version: number): boolean {
    return version <= this.settled || this.#done.has(version);
  }

  write({ first, last, version, type }: Piece, payload: Uint8Array): void {
    for (const [from, to] of this.#written.below(first, last, version)) {
      const part = this.#flat.slice([from / type.step, to / type.step]);
      releasing(part, () => part.write(payload.subarray(from - first, to - first) as never));
    }
  }

  /**
   * Enters the piece. The versions that are complete with it, as soon as all bytes of the tensor
   * were written.
   */
  complete({ version, begin, end, first, last }: Piece): Received[] {
    const written = this.#written;
    written.mark(first, last, version);
    const [, , from] = this.#pending.get(version) ?? [begin, end, begin];
    const at = written.reach(from, version);
    if (at < end) this.#pending.set(version, [begin, end, at]);
    else {
      this.#settle(version);
      const { name, id } = this;
      this.#early.push({ name, id, version, begin, end, tensor: this.tensor });
    }
    if (this.#filled < this.nbytes) {
      this.#filled = written.reach(this.#filled, 1);
      if (this.#filled < this.nbytes) return [];
    }
    if (this.#pending.size + this.#done.size > 0) written.forget(this.settled);
    else written.clear();
    const received = this.#early;
    this.#early = [];
    return received;
  }

  release(): void {
    this.#flat.release();
    this.tensor.release();
  }

  #settle(version: number): void {
    this.#pending.delete(version);
    this.#done.add(version);
    while (this.#done.delete(this.settled + 1)) this.settled++;
  }
}

/** Tensors by id. A piece that cannot be accepted throws, and changes nothing. */
export class Receiving {
  readonly #ids = new Map<number, Incoming>();
  /** Of each name: the ids in use, and the latest that is complete. */
  readonly #named = new Map<string, Set<number>>();
  readonly #latest = new Map<string, number>();
  readonly #freed = new Spans();
  #held = 0;
  #entries = 0;

  constructor(
    private readonly limit: number,
    private readonly device: GPUDevice | undefined,
  ) {}

  /** Takes a piece; gives what is complete now. */
  take(piece: Piece, payload: Uint8Array): Received[] {
    const { id, name, version, begin, end, first, last } = piece;
    if (this.#isFreed(id) || id < (this.#latest.get(name) ?? 0)) return [];
    const existing = this.#ids.get(id);
    existing?.check(piece);
    if (existing?.isComplete(version)) return [];
    if (version > (existing?.settled ?? 0) + MOST_VERSIONS || this.#entries >= MOST_ENTRIES) {
      throw refusal(piece, "too many writes of it are incomplete");
    }
    const total = nbytesOf(piece.type, piece.shape);
    const isWord = (at: number) => at % 4 === 0 || at === total;
    if (this.device && ![begin, end, first, last].every(isWord)) {
      throw refusal(piece, "WebGPU writes whole words of 4 bytes: send a part of whole words");
    }
    const incoming = existing ?? this.#make(piece, total);
    try {
      incoming.write(piece, payload);
    } catch (error) {
      if (existing === undefined) incoming.release();
      throw error;
    }
    if (existing === undefined) {
      this.#ids.set(id, incoming);
      const ids = this.#named.get(name) ?? new Set();
      this.#named.set(name, ids.add(id));
      this.#held += total;
    }
    this.#entries -= incoming.entries;
    const received = incoming.complete(piece);
    this.#entries += incoming.entries;
    if (received.length > 0) this.#replace(name, id);
    return received;
  }

  /** Forgets a tensor for ever; gives its name if there was one. */
  free(id: number): string | undefined {
    const isGap = ![id - 1, id, id + 1].some((each) => this.#isFreed(each));
    if (isGap && this.#freed.count >= MOST_GAPS) {
      throw new UnsupportedError("too many tensors are freed out of order");
    }
    const name = this.#ids.get(id)?.name;
    this.#drop(id);
    return name;
  }

  /** Releases all. */
  clear(): void {
    for (const incoming of this.#ids.values()) incoming.release();
    this.#ids.clear();
    this.#named.clear();
    this.#latest.clear();
    this.#held = 0;
    this.#entries = 0;
    this.#freed.clear();
  }

  #isFreed(id: number): boolean {
    return this.#freed.reach(id, 1) > id;
  }

  /** A tensor that is complete takes the place of earlier ones of its name. */
  #replace(name: string, id: number): void {
    if (this.#latest.get(name) === id) return;
    this.#latest.set(name, id);
    for (const earlier of [...(this.#named.get(name) ?? [])]) if (earlier < id) this.#drop(earlier);
  }

  #drop(id: number): void {
    this.#freed.mark(id, id + 1, 1);
    const incoming = this.#ids.get(id);
    if (incoming === undefined) return;
    this.#ids.delete(id);
    this.#held -= incoming.nbytes;
    this.#entries -= incoming.entries;
    const { name } = incoming;
    const ids = this.#named.get(name) as Set<number>;
    ids.delete(id);
    if (ids.size === 0) this.#named.delete(name);
    if (this.#latest.get(name) === id) this.#latest.delete(name);
    incoming.release();
  }

  #make(piece: Piece, nbytes: number): Incoming {
    const { type, shape } = piece;
    if (nbytes > this.limit - this.#held) {
      throw refusal(
        piece,
        `it takes ${nbytes} bytes, and ${this.limit - this.#held} of the limit of ${this.limit} ` +
          "are left: the receiver's option limit changes it",
      );
    }
    if (this.#ids.size >= MOST_TENSORS || this.#freed.count >= MOST_GAPS) {
      throw refusal(piece, `there are ${MOST_TENSORS} already`);
    }
    return new Incoming(piece, nbytes, this.#empty(shape, type, nbytes));
  }

  #empty(shape: readonly number[], type: DType, nbytes: number): Tensor {
    if (this.device) return emptyOn(this.device, shape, type.name);
    const array = new type.View(Math.ceil(nbytes / type.View.BYTES_PER_ELEMENT));
    return Tensor.fromTypedArray(array, { shape, dtype: type.name }) as Tensor;
  }
}

function refusal({ name, type, shape, begin, end }: Piece, why: string): UnsupportedError {
  const what = `bytes ${begin} to ${end} of "${cut(name, 200)}", ${type.name}[${shape}]`;
  return new UnsupportedError(`${what} were refused: ${why}`);
}
