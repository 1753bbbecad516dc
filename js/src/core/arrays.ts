import { type AnyTypedArray, classOf } from "./dtype.js";
import { gather, putBytes } from "./elements.js";
import { quietly, UnsupportedError } from "./errors.js";
import { type Described, type Place, type Storage, spanOfTensor, unclonable } from "./storage.js";

/** Memory that moves when it grows: a `WebAssembly.Memory`, or an object with its `buffer`. */
export interface Moving {
  readonly buffer: ArrayBufferLike;
}

/** Elements in memory that is not Pyodide's: a typed array's, or another library's. */
export class ArrayStorage implements Storage {
  readonly guard = unclonable;
  readonly memory: Moving | undefined;
  readonly mayBeReplaced: boolean;
  readonly #source: Moving;
  readonly #release: (() => void) | undefined;
  #holds = 1;

  /**
   * @param source - a typed array, or memory whose `buffer` is read again for every use
   * @param release - called once, when the last tensor over it was released
   */
  constructor(source: Moving, release?: () => void) {
    this.#source = source;
    this.#release = release;
    this.mayBeReplaced = !ArrayBuffer.isView(source);
    if (this.mayBeReplaced) this.memory = source;
  }

  bytes(tensor: Described): ArrayBufferLike {
    const { buffer } = this.#source;
    const { start, bytes } = spanOfTensor(tensor);
    // Detached memory is empty, and resizable memory may have shrunk.
    if (start + bytes <= buffer.byteLength || bytes === 0) return buffer;
    throw gone(`${tensor.toString()}: the array behind it`);
  }

  share(): number {
    this.#holds++;
    return 1;
  }

  pack(tensor: Described): Place {
    const array = packedArray(tensor, this.bytes(tensor));
    return { storage: new ArrayStorage(array), handle: 1, start: 0 };
  }

  yield(tensor: Described): ArrayBuffer | undefined {
    const { buffer } = this.#source;
    const whole = buffer.byteLength === tensor.nbytes && tensor._strides === null;
    const ours = this.#holds === 1 && this.#release === undefined && this.memory === undefined;
    return whole && ours && buffer instanceof ArrayBuffer ? buffer : undefined;
  }

  release(): void {
    if (--this.#holds > 0) return;
    quietly(() => this.#release?.());
  }
}

function gone(what: string, cause?: unknown) {
  return new UnsupportedError(
    `${what} was detached (transferred, or its memory grew) or shrank; make the tensor from the new ` +
      "array",
    { cause },
  );
}

/** Throws UnsupportedError for an array that is empty because its memory was taken from it. */
export function checkAttached(array: AnyTypedArray): void {
  if (array.byteLength > 0) return;
  try {
    array.keys(); // which throws for such arrays alone
  } catch (cause) {
    throw gone(`this ${classOf(array)}`, cause);
  }
}

/** A fresh array of a CPU tensor's elements, in row-major order. */
export function packedArray(tensor: Described, memory: ArrayBufferLike) {
  const { _type, size } = tensor;
  const packed = new _type.View(Math.ceil(size * _type.components));
  packInto(new Uint8Array(packed.buffer), tensor, memory);
  return packed;
}

/** Copies a CPU tensor's elements over bytes, in row-major order. */
export function packInto(target: Uint8Array, tensor: Described, memory: ArrayBufferLike): void {
  const { _type, _shape, _strides, size } = tensor;
  const { start, bytes } = spanOfTensor(tensor);
  const source = new Uint8Array(memory, bytes > 0 ? start : 0, bytes);
  if (_strides === null) putBytes(target, source, size * _type.step);
  else gather(target, source, _shape, _strides, _type.step);
}
