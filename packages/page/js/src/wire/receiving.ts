/** The receiving half of an endpoint: tensors that the other side writes. */

import { Tensor, UnsupportedError } from "dlpack-web/core";
import { type DType, emptyOn, type GPUDevice } from "dlpack-web/internal";
import { releasing } from "../common.js";
import { cut, nbytesOf, type Piece } from "./frame.js";

/**
 * Tensors that a peer may make us keep, numbers of tensors that it may skip, and pieces that may come
 * before their turn.
 */
const [MOST_TENSORS, MOST_GAPS, MOST_EARLY] = [8192, 16384, 1024];

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

/** A tensor, whose writes are done in order. */
class Incoming {
  readonly #piece: Piece;
  /** All elements along one axis. */
  readonly #flat: Tensor;
  /** The write in progress, its bytes if they are known, and up to where they have come; -1: none has. */
  #version = 1;
  #range: readonly [begin: number, end: number] | null;
  #at = -1;

  /** piece: any of the tensor's. */
  constructor(
    piece: Piece,
    readonly nbytes: number,
    private readonly tensor: Tensor,
  ) {
    this.#piece = piece;
    this.#range = [0, nbytes];
    this.#flat = tensor.reshape([tensor.size]);
  }

  get name(): string {
    return this.#piece.name;
  }

  /** Throws for a piece of another tensor, or of another write with its version. */
  check(piece: Piece): void {
    const { name, type, shape, id, version } = piece;
    const own = this.#piece;
    if (own.name !== name || own.type !== type || `${own.shape}` !== `${shape}`) {
      const is = `"${cut(own.name, 200)}", ${own.type.name}[${own.shape}]`;
      throw refusal(piece, `id ${id} is of ${is}, for ever`);
    }
    const [begin, end] = (version === this.#version && this.#range) || [piece.begin, piece.end];
    if (begin === piece.begin && end === piece.end) return;
    throw refusal(piece, `version ${version} writes ${begin} to ${end}`);
  }

  isRepeat({ version, last }: Piece): boolean {
    return version === this.#version ? last <= this.#at : version < this.#version;
  }

  /** Whether all that was sent before it has come. */
  isDue({ version, begin, first }: Piece): boolean {
    return (
      version < this.#version || (version === this.#version && first <= Math.max(this.#at, begin))
    );
  }

  write({ first, last, type }: Piece, payload: Uint8Array): void {
    const part = this.#flat.slice([first / type.step, last / type.step]);
    releasing(part, () => part.write(payload as never));
  }

  /** The write that is complete with a piece, if one is. */
  enter({ name, id, version, begin, end, last }: Piece): Received[] {
    const isWhole = last >= end;
    this.#version = isWhole ? version + 1 : version;
    this.#range = isWhole ? null : [begin, end];
    this.#at = isWhole ? -1 : last;
    return isWhole ? [{ name, id, version, begin, end, tensor: this.tensor }] : [];
  }

  release(): void {
    this.#flat.release();
    this.tensor.release();
  }
}

/** Tensors by id. A piece that cannot be accepted throws, and changes nothing. */
export class Receiving {
  readonly #ids = new Map<number, Incoming>();
  /** Of each name: the ids in use, and the latest that is complete. */
  readonly #named = new Map<string, Set<number>>();
  readonly #latest = new Map<string, number>();
  /** The highest id, and those below it that have not come. The rest was freed. */
  #last = -1;
  readonly #skipped = new Set<number>();
  /** What came before its turn, by id, version and first byte. */
  readonly #early = new Map<string, readonly [Piece, Uint8Array]>();
  #held = 0;

  /** window: bytes that the other side may send before they are acknowledged. */
  constructor(
    private readonly limit: number,
    private readonly window: number,
    private readonly device: GPUDevice | undefined,
  ) {}

  /**
   * Takes a piece; gives the write that is complete with it. null: it is kept until those before it have
   * come.
   */
  take(piece: Piece, payload: Uint8Array): Received[] | null {
    const { id, name, begin, end, first, last } = piece;
    const existing = this.#ids.get(id);
    const isFreed = !existing && id <= this.#last && !this.#skipped.has(id);
    if (isFreed || id < (this.#latest.get(name) ?? 0)) return [];
    const total = nbytesOf(piece.type, piece.shape);
    const isWord = (at: number) => at % 4 === 0 || at === total;
    const incoming = existing ?? this.#make(piece, total);
    const isDue = incoming.isDue(piece);
    try {
      incoming.check(piece);
      if (incoming.isRepeat(piece)) return [];
      if (this.device && ![begin, end, first, last].every(isWord)) {
        throw refusal(piece, "WebGPU writes whole words of 4 bytes: send a part of whole words");
      }
      if (isDue) incoming.write(piece, payload);
      else this.#keep(piece, payload);
    } catch (error) {
      if (existing === undefined) incoming.release();
      throw error;
    }
    if (existing === undefined) {
      this.#ids.set(id, incoming);
      const ids = this.#named.get(name) ?? new Set();
      this.#named.set(name, ids.add(id));
      this.#held += total;
      this.#count(id);
    }
    if (!isDue) return null;
    const received = incoming.enter(piece);
    if (received.length > 0) this.#replace(name, id);
    return received;
  }

  /** A piece of a tensor that was kept, and whose turn has come; it is taken next. */
  following(id: number): readonly [Piece, Uint8Array] | undefined {
    const incoming = this.#ids.get(id);
    for (const [key, found] of this.#early) {
      if (found[0].id !== id || !incoming?.isDue(found[0])) continue;
      this.#early.delete(key);
      return found;
    }
    return undefined;
  }

  /** Forgets a tensor for ever; gives its name if there was one. */
  free(id: number): string | undefined {
    this.#checkNumber(id);
    const name = this.#ids.get(id)?.name;
    this.#drop(id);
    return name;
  }

  /** Releases all. */
  clear(): void {
    for (const incoming of this.#ids.values()) incoming.release();
    for (const kept of [this.#ids, this.#named, this.#latest, this.#skipped, this.#early])
      kept.clear();
    this.#last = -1;
    this.#held = 0;
  }

  #checkNumber(id: number): void {
    if (this.#skipped.size + id - this.#last <= MOST_GAPS + 1) return;
    throw new UnsupportedError(`too many tensors before number ${id} have not come`);
  }

  /** An id has come; those below it may come later. */
  #count(id: number): void {
    for (let at = this.#last + 1; at < id; at++) this.#skipped.add(at);
    this.#last = Math.max(this.#last, id);
    this.#skipped.delete(id);
  }

  #keep(piece: Piece, payload: Uint8Array): void {
    let kept = payload.length;
    for (const [, bytes] of this.#early.values()) kept += bytes.length;
    if (this.#early.size >= MOST_EARLY || kept > this.window) {
      throw refusal(piece, "too much that was sent before it has not come");
    }
    this.#early.set(`${piece.id}/${piece.version}/${piece.first}`, [piece, payload.slice()]);
  }

  /** A tensor that is complete takes the place of earlier ones of its name. */
  #replace(name: string, id: number): void {
    if (this.#latest.get(name) === id) return;
    this.#latest.set(name, id);
    for (const earlier of [...(this.#named.get(name) ?? [])]) if (earlier < id) this.#drop(earlier);
  }

  #drop(id: number): void {
    this.#count(id);
    const incoming = this.#ids.get(id);
    if (incoming === undefined) return;
    this.#ids.delete(id);
    this.#held -= incoming.nbytes;
    for (const [key, [piece]] of this.#early) if (piece.id === id) this.#early.delete(key);
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
    if (this.#ids.size >= MOST_TENSORS) throw refusal(piece, `there are ${MOST_TENSORS} already`);
    this.#checkNumber(piece.id);
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
