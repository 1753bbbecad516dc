import { UnsupportedError } from "./errors.js";
import type { Storage } from "./storage.js";
import type { Tensor } from "./tensor.js";

/** Where elements are: a typed array, or memory that may move when it grows. */
export interface ByteSource {
  readonly buffer: ArrayBufferLike;
  /** Of a typed array; a change means that it was detached. */
  readonly length?: number;
}

/** Elements in memory that is not Pyodide's: a typed array's, or another library's. */
export class ArrayStorage implements Storage {
  readonly memory: ByteSource | undefined;
  readonly #source: ByteSource;
  readonly #length: number | undefined;
  readonly #release: (() => void) | undefined;
  #holds = 1;

  /** @param release - called once, when the last tensor over it was released */
  constructor(source: ByteSource, release?: () => void) {
    this.#source = source;
    this.#length = source.length;
    this.#release = release;
    if (source.length === undefined) this.memory = source;
  }

  bytes(tensor: Tensor): ArrayBufferLike {
    if (this.#source.length === this.#length) return this.#source.buffer;
    throw new UnsupportedError(
      `${tensor}: the array behind it was detached (transferred, or its memory grew); ` +
        "make the tensor from the new array",
    );
  }

  share(tensor: Tensor): Tensor {
    this.#holds++;
    return tensor._again(1);
  }

  pack(tensor: Tensor): Tensor {
    return tensor._copy();
  }

  yield(tensor: Tensor): ArrayBuffer | undefined {
    const { buffer } = this.#source;
    const whole = buffer.byteLength === tensor.nbytes && tensor._strides === null;
    const ours = this.#holds === 1 && this.#release === undefined && this.memory === undefined;
    return whole && ours && buffer instanceof ArrayBuffer ? buffer : undefined;
  }

  release(): void {
    if (--this.#holds > 0) return;
    try {
      this.#release?.();
    } catch (error) {
      console.error(error);
    }
  }
}
