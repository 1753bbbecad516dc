/** The receiving half of an endpoint: tensors that the other side writes. */
import type { DType } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import { Tensor } from "../core/tensor.js";
import { nbytesOf } from "../open/entry.js";
import { emptyOnDevice } from "../webgpu/buffers.js";
import { useDevice } from "../webgpu/device.js";
import type { Piece } from "./frame.js";
import { Spans } from "./spans.js";

/** Versions of a tensor that may be incomplete at once: senders wait, receivers refuse more. */
export const MOST_VERSIONS = 1024;
/** Tensors that a peer may make us keep, and entries about what is incomplete. */
const [MOST_TENSORS, MOST_ENTRIES] = [8192, 65536];

/** A tensor after a write to it has arrived completely. */
export interface Received {
  readonly name: string;
  readonly id: number;
  readonly version: number;
  /** The bytes that this version wrote. */
  readonly begin: number;
  readonly end: number;
  /** The endpoint's: valid until the other side frees it, or `close()`. */
  readonly tensor: Tensor;
}

interface Incoming extends Pick<Piece, "name" | "type" | "shape" | "id"> {
  readonly nbytes: number;
  readonly tensor: Tensor;
  /** All elements along one axis. */
  readonly flat: Tensor;
  /** By byte. */
  readonly written: Spans;
  /** By version: 1 if it is complete. */
  readonly done: Spans;
  /** All versions up to this one are complete. */
  settled: number;
  /** What incomplete versions write. */
  readonly pending: Map<number, readonly [begin: number, end: number]>;
}

/** Tensors by id. A piece that cannot be accepted throws, and changes nothing. */
export class Receiving {
  readonly #limit: number;
  readonly #device: GPUDevice | undefined;
  readonly #ids = new Map<number, Incoming>();
  readonly #freed = new Spans();
  #held = 0;
  #entries = 0;

  constructor(limit: number, device: GPUDevice | undefined) {
    this.#limit = limit;
    this.#device = device;
  }

  /** Takes a piece; gives the tensor if its version is complete now. */
  take(piece: Piece, payload: Uint8Array): Received | undefined {
    const { id, version, begin, end, first, last } = piece;
    if (this.#freed.endAt(id) > id) return undefined;
    const known = this.#ids.get(id);
    if (known !== undefined) checkSame(known, piece);
    if (known && (version <= known.settled || known.done.endAt(version) > version))
      return undefined;
    const range = known?.pending.get(version);
    if (range && (range[0] !== begin || range[1] !== end)) {
      throw refusal(piece, `version ${version} writes ${range[0]} to ${range[1]}`);
    }
    if (version > (known?.settled ?? 0) + MOST_VERSIONS || this.#entries > MOST_ENTRIES) {
      throw refusal(piece, "too many writes of it are incomplete");
    }
    const total = nbytesOf(piece);
    const isWord = (at: number) => at % 4 === 0 || at === total;
    if (this.#device && ![begin, end, first, last].every(isWord)) {
      throw refusal(piece, "WebGPU writes whole words of 4 bytes: send a part of whole words");
    }
    const incoming = known ?? this.#make(piece, total);
    try {
      for (const [from, to] of incoming.written.below(first, last, version)) {
        const part = incoming.flat.slice([from / piece.type.step, to / piece.type.step]);
        try {
          part.write(payload.subarray(from - first, to - first) as never);
        } finally {
          part.release();
        }
      }
    } catch (error) {
      if (known === undefined) release(incoming);
      throw error;
    }
    if (known === undefined) {
      this.#ids.set(id, incoming);
      this.#held += total;
    }
    this.#entries -= known ? entriesOf(known) : 0;
    const received = complete(incoming, piece);
    this.#entries += entriesOf(incoming);
    return received;
  }

  /** Forgets a tensor for ever; gives its name if there was one. */
  free(id: number): string | undefined {
    if (this.#freed.count > MOST_TENSORS) {
      throw new UnsupportedError("too many tensors are freed out of order");
    }
    this.#freed.mark(id, id + 1, 1);
    const incoming = this.#ids.get(id);
    if (incoming === undefined) return undefined;
    this.#ids.delete(id);
    this.#held -= incoming.nbytes;
    this.#entries -= entriesOf(incoming);
    release(incoming);
    return incoming.name;
  }

  /** Releases all. */
  clear(): void {
    for (const incoming of this.#ids.values()) release(incoming);
    this.#ids.clear();
    this.#held = 0;
    this.#entries = 0;
    this.#freed.forget(1);
  }

  #make(piece: Piece, nbytes: number): Incoming {
    const { id, name, type, shape } = piece;
    if (nbytes > this.#limit - this.#held) {
      throw refusal(
        piece,
        `it takes ${nbytes} bytes, and ${this.#limit - this.#held} of the limit of ${this.#limit} ` +
          "are left: the receiver's option limit changes it",
      );
    }
    if (this.#ids.size >= MOST_TENSORS) throw refusal(piece, `there are ${MOST_TENSORS} already`);
    const tensor = this.#empty(shape, type, nbytes);
    const flat = tensor.reshape([tensor.size]);
    const [written, done, pending] = [new Spans(), new Spans(), new Map()];
    return { id, name, type, shape, nbytes, tensor, flat, written, done, settled: 0, pending };
  }

  #empty(shape: readonly number[], type: DType, nbytes: number): Tensor {
    if (this.#device) return emptyOnDevice(useDevice(this.#device), shape, type);
    const array = new type.View(Math.ceil(nbytes / type.View.BYTES_PER_ELEMENT));
    return Tensor.fromTypedArray(array, { shape, dtype: type.name }) as Tensor;
  }
}

function complete(incoming: Incoming, piece: Piece): Received | undefined {
  const { name, id, tensor, written, done, pending } = incoming;
  const { version, begin, end, first, last } = piece;
  written.mark(first, last, version);
  pending.set(version, [begin, end]);
  if (written.below(begin, end, version).length > 0) return undefined;
  pending.delete(version);
  done.mark(version, version + 1, 1);
  incoming.settled = Math.max(done.endAt(1) - 1, 0);
  written.forget(incoming.settled);
  return { name, id, version, begin, end, tensor };
}

function checkSame(known: Incoming, piece: Piece): void {
  const { name, type, shape } = known;
  if (name === piece.name && type === piece.type && `${shape}` === `${piece.shape}`) return;
  throw refusal(piece, `id ${piece.id} is of "${name}", ${type.name}[${shape}], for ever`);
}

function refusal({ name, type, shape, begin, end }: Piece, why: string): UnsupportedError {
  const what = `bytes ${begin} to ${end} of "${name}", ${type.name}[${shape}]`;
  return new UnsupportedError(`${what} were refused: ${why}`);
}

function entriesOf({ written, done, pending }: Incoming): number {
  return written.count + done.count + pending.size;
}

function release({ flat, tensor }: Incoming): void {
  flat.release();
  tensor.release();
}
