import type { DTypeName } from "./dtype.js";
import { tagOf, textOf } from "./errors.js";
import type { GPUDevice } from "./globals.js";

/** All names of options; 0 for those that are not for users. */
export type Names<O> = { readonly [name in keyof O]-?: 0 | 1 };

/**
 * Throws TypeError for options that would be ignored: values other than plain objects, such as a
 * bare shape or an adapter, and unknown names.
 *
 * @param names - null: they are checked elsewhere
 */
export function checkOptions<O>(
  options: object,
  of: string,
  names: Names<O> | null,
  example: string,
): void {
  // The first costs a kernel's call less.
  if (options?.constructor !== Object && tagOf(options) !== "[object Object]") {
    throw new TypeError(
      `the options of ${of} must be an object, e.g. { ${example} }, not ${textOf(options)}`,
    );
  }
  if (names === null) return;
  for (const name in options) {
    if (Object.hasOwn(names, name) || !Object.hasOwn(options, name)) continue;
    const known = Object.keys(names).filter((each) => names[each as keyof O]);
    throw new TypeError(`${of} has no option "${name.slice(0, 100)}": it has ${known.join(", ")}`);
  }
}

/** Options of `Tensor.fromTypedArray`. */
export interface FromTypedArrayOptions<D extends DTypeName = DTypeName> {
  /** Default: one axis, of all elements from `offset` on. */
  shape?: ArrayLike<number> | undefined;
  /**
   * Default: that of the array's class. Required where JS has no class (bool, complex, bfloat16,
   * float8, … over their raw values).
   */
  dtype?: D | undefined;
  /** In elements; default row-major. */
  strides?: ArrayLike<number> | undefined;
  /** Position of element 0 in the array, in elements; default 0. */
  offset?: number | undefined;
  /** Whether sub-byte elements have a byte each. */
  padded?: boolean | undefined;
}

/** Options of `Tensor.fromMemory`. */
export interface FromMemoryOptions<D extends DTypeName = DTypeName> {
  shape: ArrayLike<number>;
  dtype: D;
  /** In elements; default row-major. */
  strides?: ArrayLike<number> | undefined;
  /** Whether nobody may write to it; default false. */
  readOnly?: boolean | undefined;
  /** Whether sub-byte elements have a byte each. */
  padded?: boolean | undefined;
  /** Called once when nothing holds the memory any more. */
  release?: (() => void) | undefined;
}

/** The result of `tensor.transfer()`, to post to another thread. */
export interface TensorMessage {
  dtype: DTypeName;
  padded: boolean;
  shape: number[];
  /** The elements in row-major order; belongs on the transfer list. */
  buffer: ArrayBuffer;
}

/** Options of `tensor.to`. */
export interface ToOptions<D extends DTypeName = DTypeName> {
  /**
   * Converts the elements to this dtype: float64 to float32, complex128 to complex64, float32 to
   * float16 or bfloat16 (rounded) and back, int64 to int32 and uint64 to uint32 (UnsupportedError
   * for a value that does not fit).
   */
  dtype?: D | undefined;
  /**
   * `GPUBufferUsage` flags; default STORAGE | UNIFORM | COPY_SRC | COPY_DST. A buffer with others is
   * destroyed when the last tensor over it is released, even if `tensor.buffer` was kept.
   */
  usage?: number | undefined;
}

/** Options of `Tensor.fromGPUBuffer`. */
export interface FromGPUBufferOptions<D extends DTypeName = DTypeName>
  extends FromMemoryOptions<D> {
  /** The device that made the buffer, which a `GPUBuffer` does not name. */
  device: GPUDevice;
  /** Bytes from the start of the buffer to element 0; default 0. */
  byteOffset?: number | undefined;
  /** In elements; default row-major. A strided tensor can be read, but not bound or copied. */
  strides?: ArrayLike<number> | undefined;
  /**
   * Bytes from `byteOffset` on that only this tensor uses: kernels and libraries may overwrite the
   * padding after its elements. Default: the elements, and the rest of the buffer if that is less
   * than 16 bytes.
   */
  capacity?: number | undefined;
  /** Called once when nothing holds the buffer any more. Without it the buffer is borrowed. */
  release?: (() => void) | undefined;
}

const MEMORY = { shape: 1, dtype: 1, strides: 1, readOnly: 1, padded: 1, release: 1 } as const;
export const FROM_MEMORY: Names<FromMemoryOptions> = MEMORY;
export const FROM_GPU_BUFFER: Names<FromGPUBufferOptions> = {
  device: 1,
  byteOffset: 1,
  capacity: 1,
  ...MEMORY,
};
