/** Targets for the elements of a file: CPU memory, with or without conversion; gpu.ts has GPUs. */
import { convertElements } from "../core/convert.js";
import { bytesOf, type DType } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";

/** Takes the bytes of a tensor, chunk by chunk. */
export interface Sink {
  /** Takes a chunk; the caller may reuse it when this resolves. */
  put(chunk: Uint8Array): Promise<void> | void;
  /** The tensor, once it has all bytes; the caller's. */
  finish(): Promise<Tensor>;
  /** Releases everything instead; a put() in progress writes nothing after it. */
  drop(): void;
}

/** Makes the memory for the elements of a CPU tensor. */
export type Place = (shape: readonly number[], type: DType) => Tensor;

const inJavaScript: Place = (shape, type) => {
  const size = sizeOf(shape);
  let array: ReturnType<typeof newArray>;
  try {
    array = newArray(type, size);
  } catch (cause) {
    throw new UnsupportedError(`${bytesOf(type, size)} bytes are more than one array can have`, {
      given: bytesOf(type, size),
      cause,
    });
  }
  return Tensor.fromTypedArray(array, { shape, dtype: type.name });
};

function newArray(type: DType, size: number) {
  return new type.View(Math.ceil(size * type.components));
}

/** Memory for a known number of bytes. */
export class MemorySink implements Sink {
  readonly #tensor: Tensor;
  #at = 0;

  constructor(shape: readonly number[], type: DType, place: Place = inJavaScript) {
    this.#tensor = place(shape, type);
  }

  put(chunk: Uint8Array): void {
    // Read again each time: wasm memory moves when it grows.
    this.#tensor._managed.bytes().set(chunk, this.#at);
    this.#at += chunk.length;
  }

  async finish(): Promise<Tensor> {
    return this.#tensor;
  }

  drop(): void {
    this.#tensor.release();
  }
}

/** Memory that grows, for an unknown number of bytes. */
export class GrowingSink implements Sink {
  readonly #shape: readonly number[] | null;
  readonly #type: DType;
  readonly #place: Place;
  #bytes = new Uint8Array(1 << 16);
  #at = 0;

  /** @param shape - null: one axis, of all elements */
  constructor(shape: readonly number[] | null, type: DType, place: Place = inJavaScript) {
    this.#shape = shape;
    this.#type = type;
    this.#place = place;
  }

  put(chunk: Uint8Array): void {
    const needed = this.#at + chunk.length;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#at));
      this.#bytes = larger;
    }
    this.#bytes.set(chunk, this.#at);
    this.#at = needed;
  }

  async finish(): Promise<Tensor> {
    const size = Math.floor(this.#at / this.#type.step);
    if (bytesOf(this.#type, size) !== this.#at) {
      throw new UnsupportedError(
        `${this.#at} bytes are not a whole number of ${this.#type.name} elements`,
      );
    }
    const tensor = this.#place(this.#shape ?? [size], this.#type);
    tensor._managed.bytes().set(this.#bytes.subarray(0, this.#at));
    this.drop();
    return tensor;
  }

  drop(): void {
    this.#bytes = new Uint8Array(0);
  }
}

/** Bytes that are converted at once. */
const BLOCK = 1 << 20;

/** Converts elements for another sink, which has the new dtype. */
export class ConvertingSink implements Sink {
  readonly #inner: Sink;
  readonly #from: DType;
  readonly #to: DType;
  readonly #what: string;
  /** Elements of 16 bytes at most: whole ones. */
  readonly #block = new Uint8Array(BLOCK);
  #filled = 0;
  #done = 0;
  #dropped = false;

  constructor(inner: Sink, from: DType, to: DType, what: string) {
    this.#inner = inner;
    this.#from = from;
    this.#to = to;
    this.#what = what;
  }

  async put(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length && !this.#dropped; ) {
      const part = chunk.subarray(at, at + BLOCK - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled === BLOCK) await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    const { View, components, step } = this.#from;
    const size = this.#filled / step;
    const values = new View(this.#block.buffer, 0, size * components);
    const what = this.#done > 0 ? `${this.#what}[${this.#done}:] (flat)` : this.#what;
    const made = convertElements(values, this.#from, this.#to, size, what);
    this.#done += size;
    this.#filled = 0;
    await this.#inner.put(new Uint8Array(made.buffer, made.byteOffset, made.byteLength));
  }

  async finish(): Promise<Tensor> {
    if (this.#filled > 0) await this.#flush();
    return this.#inner.finish();
  }

  drop(): void {
    this.#dropped = true;
    this.#inner.drop();
  }
}
