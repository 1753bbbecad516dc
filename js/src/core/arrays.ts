/** Tensors over memory that is not Pyodide's. */
import { CPU_DEVICE } from "./device.js";
import {
  type AnyTypedArray,
  bytesOf,
  checkHolds,
  classOf,
  dtypeNamed,
  dtypeOfArray,
  type TypedArray,
} from "./dtype.js";
import { quietly, tagOf, UnsupportedError } from "./errors.js";
import { ManagedTensor, type Place, type Storage, unclonable } from "./managed.js";
import {
  checkOptions,
  FROM_MEMORY,
  type FromMemoryOptions,
  type FromTypedArrayOptions,
  type TensorMessage,
} from "./options.js";
import { checkShape, checkStrides, checkSubByte, extentOf, sizeOf, spanOf } from "./shape.js";

/** Memory that moves when it grows: a `WebAssembly.Memory`, or an object with its `buffer`. */
export interface Moving {
  readonly buffer: ArrayBufferLike;
}

/** Elements in a typed array's memory, or in another library's. */
export class ArrayStorage implements Storage {
  readonly guard = unclonable;
  readonly memory: Moving | undefined;
  readonly mayBeReplaced: boolean;
  readonly #source: Moving;
  readonly #release: (() => void) | undefined;
  #holds = 1;

  /** Over a typed array, or memory whose `buffer` is read again for every use. Calls `release` once. */
  constructor(source: Moving, release?: () => void) {
    this.mayBeReplaced = !ArrayBuffer.isView(source);
    // A view is not kept: in debug mode, reading its `buffer` later would count as the user's.
    this.#source = this.mayBeReplaced ? source : { buffer: source.buffer };
    this.#release = release;
    if (this.mayBeReplaced) this.memory = source;
  }

  bytes(tensor: ManagedTensor): ArrayBufferLike {
    const { buffer } = this.#source;
    const { start, bytes } = tensor.span;
    // Detached memory is empty, and resizable memory may have shrunk.
    if (start + bytes <= buffer.byteLength || bytes === 0) return buffer;
    throw gone(`${tensor.toString()}: the array behind it`);
  }

  share(): number {
    this.#holds++;
    return 1;
  }

  pack(tensor: ManagedTensor): Place {
    return { storage: new ArrayStorage(tensor.copy()), handle: 1, start: 0 };
  }

  yield(tensor: ManagedTensor): ArrayBuffer | undefined {
    const { buffer } = this.#source;
    const whole = buffer.byteLength === tensor.nbytes && tensor.strides === null;
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
function checkAttached(array: AnyTypedArray): void {
  if (array.byteLength > 0) return;
  try {
    array.keys(); // which throws for such arrays alone
  } catch (cause) {
    throw gone(`this ${classOf(array)}`, cause);
  }
}

/**
 * Implements `Tensor.fromTypedArray` and, as `verb`, `Tensor.from`. A library has `lent` the array
 * until `release`.
 */
export function fromTypedArray(
  array: AnyTypedArray,
  options: FromTypedArrayOptions = {},
  verb = "fromTypedArray()",
  lent?: { release(): void; readOnly: boolean },
): ManagedTensor {
  const own = ArrayBuffer.isView(array) ? dtypeOfArray(array) : undefined;
  if (own === undefined) {
    throw new TypeError(
      `fromTypedArray needs a typed array, not ${tagOf(array)}: new Float32Array(…) makes one`,
    );
  }
  const names = { shape: 1, dtype: 1, strides: 1, offset: 1, padded: 1 } as const;
  checkOptions<FromTypedArrayOptions>(options, verb, names, "shape: [2, 3]");
  checkAttached(array);
  const type = options.dtype === undefined ? own : dtypeNamed(options.dtype, options.padded);
  checkHolds(array, type);
  const count = Math.floor(array.byteLength / type.step);
  const from = options.offset ?? 0;
  if (!Number.isInteger(from) || from < 0 || from > count) {
    throw new RangeError(
      `offset ${from} is not a position in this ${classOf(array)}, which has ${count} elements ` +
        `of ${type.name}`,
    );
  }
  const even = options.strides === undefined;
  const shape = checkShape(options.shape ?? [even ? count - from : count]);
  const strides = checkStrides(shape, options.strides);
  const whole = even && from === 0;
  const { low, high } =
    strides && sizeOf(shape) > 0 ? extentOf(shape, strides) : { low: 0, high: sizeOf(shape) - 1 };
  const needed = bytesOf(type, from + high + 1);
  const all = whole || (even && options.shape === undefined);
  const fits = all ? needed === array.byteLength : needed <= array.byteLength;
  // Elements that share bytes cannot be stepped over.
  if (!fits || !(whole || type.step % 1 === 0) || !(from + low >= 0)) {
    throw new RangeError(
      `shape [${shape}] of ${type.name}${strides ? ` with strides [${strides}]` : ""} from ` +
        `element ${from} on needs ${needed} bytes; the array has ${array.byteLength}`,
    );
  }
  const start = array.byteOffset + from * type.step;
  const storage = new ArrayStorage(array, lent?.release);
  const { readOnly = false } = lent ?? {};
  const made = new ManagedTensor(storage, 1, start, type, shape, strides, CPU_DEVICE, readOnly);
  if (whole && !lent && classOf(array) === type.View.name) {
    made.view = array as TypedArray;
    made.count = array.length;
  }
  return made;
}

/** The elements that options describe, at a byte of memory; throws RangeError if they exceed it. */
export function placeElements(
  options: Pick<FromMemoryOptions, "dtype" | "padded" | "shape" | "strides">,
  at: number,
  room: number,
  what: string,
) {
  const dtype = dtypeNamed(options.dtype, options.padded);
  const shape = checkShape(options.shape);
  const strides = checkStrides(shape, options.strides);
  checkSubByte(dtype, strides, `dtype ${dtype.name}`);
  const { start, bytes } = spanOf(dtype, shape, strides, at);
  const end = start + bytes;
  if (Number.isSafeInteger(at) && start >= 0 && end <= room) {
    return { dtype, shape, strides, start, end };
  }
  throw new RangeError(
    `shape [${shape}] of ${dtype.name} from byte ${at} reaches from byte ${start} to ${end}; ` +
      `the ${what} has ${room}`,
  );
}

/** Implements `Tensor.fromMemory`. */
export function fromMemory(memory: Moving, ptr: number, options: FromMemoryOptions): ManagedTensor {
  const example = 'shape: [2, 3], dtype: "float32"';
  checkOptions<FromMemoryOptions>(options, "fromMemory()", FROM_MEMORY, example);
  const room = ArrayBuffer.isView(memory) ? undefined : memory?.buffer?.byteLength;
  if (typeof room !== "number") {
    throw new TypeError("fromMemory needs a WebAssembly.Memory or an object with its buffer");
  }
  const { dtype, shape, strides } = placeElements(options, ptr, room, "memory");
  const storage = new ArrayStorage(memory, options.release);
  const readOnly = options.readOnly === true;
  return new ManagedTensor(storage, 1, ptr, dtype, shape, strides, CPU_DEVICE, readOnly);
}

/** Implements `Tensor.transfer`. */
export function toMessage(tensor: ManagedTensor): TensorMessage {
  tensor.check();
  if (tensor.isOnGPU) {
    throw new UnsupportedError(
      `${tensor.toString()} cannot be posted: post the result of await read()`,
    );
  }
  const { dtype, shape, storage } = tensor;
  const buffer = (storage.yield?.(tensor) ?? tensor.copy().buffer) as ArrayBuffer;
  tensor.release();
  return { dtype: dtype.name, padded: dtype.flags !== 0, shape: [...shape], buffer };
}

/** Implements `Tensor.receive`. */
export function fromMessage(message: TensorMessage): ManagedTensor {
  const { buffer, dtype, padded, shape, ...more } = Object(message) as Partial<TensorMessage>;
  const isBuffer = /ArrayBuffer\]$/.test(Object.prototype.toString.call(buffer));
  // An older version of the library also wrote which elements are null.
  if (dtype && isBuffer && Object.keys(more).length === 0) {
    return fromTypedArray(new Uint8Array(buffer as ArrayBuffer), { dtype, padded, shape });
  }
  throw new TypeError("receive() takes the result of transfer()");
}
