import type { DType, DTypeName, TypedArray } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import type { Tensor } from "./tensor.js";

/** Where the elements of a tensor are, and how a hold on them is shared and dropped. */
export interface Storage {
  /** Where the memory is found anew after it moved; absent where it never does. */
  readonly memory?: { readonly buffer: ArrayBufferLike } | undefined;
  /** The memory that `data` views; throws where JS cannot see it. */
  bytes(tensor: Tensor): ArrayBufferLike;
  /** A second hold on the same memory. */
  share(tensor: Tensor): Tensor;
  /** A fresh, row-major, aligned copy in the same kind of memory. */
  pack(tensor: Tensor): Tensor;
  /** The buffer, where it has nothing else and nobody else holds it. */
  yield?(tensor: Tensor): ArrayBuffer | undefined;
  /** Drops one hold. Never throws. */
  release(handle: number): void;
  /**
   * Some elements as `dtype`, from row-major position `first` on, in memory that the next call
   * uses again. `count` is -1 where they are no whole words. Absent where only `pack` is there.
   */
  chunk?(tensor: Tensor, dtype: DType, first: number): { count: number; bytes: Uint8Array };
}

/** What the WebGPU layer does for tensors; it is above this file and registers itself. */
export interface DeviceLayer {
  upload(tensor: Tensor, device: GPUDevice, options: ToOptions): Tensor;
  write(target: Tensor, source: Tensor, dtype: DType): void;
  read(tensors: readonly Tensor[], outs: readonly (Target | undefined)[]): Promise<Target[]>;
  fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): Tensor;
  bufferOf(tensor: Tensor): GPUBuffer;
  /** Bytes from element 0 on that are the tensor's alone. */
  capacityOf(tensor: Tensor): number;
}

let layer: DeviceLayer | null = null;

/** Called by webgpu/transfer.ts when it loads. */
export function registerDeviceLayer(made: DeviceLayer): void {
  layer = made;
}

/** The registered layer; throws where a bundle was made without it. */
export function deviceLayer(): DeviceLayer {
  if (layer !== null) return layer;
  throw new UnsupportedError('WebGPU needs import "dlpack-web"');
}

/** Where `read()` may put elements: an array of the same number of bytes, or a CPU tensor. */
export type Target = TypedArray | Tensor;

/** Options of {@link Tensor.fromTypedArray}. */
export interface FromTypedArrayOptions {
  /** Default: one axis. */
  shape?: ArrayLike<number>;
  /**
   * Default: that of the array's class. Needed for what JS has no class for (bool, complex,
   * bfloat16, float8, … over their raw values).
   */
  dtype?: DTypeName;
  /** In elements; default row-major. */
  strides?: ArrayLike<number>;
  /** Position of element 0 in the array, in elements; default 0. */
  offset?: number;
  /** Whether sub-byte elements have a byte each. */
  padded?: boolean;
}

/** What {@link Tensor.transfer} makes, to be posted to another thread. */
export interface TensorMessage {
  dtype: DTypeName;
  padded: boolean;
  shape: number[];
  /** The elements in row-major order; belongs on the transfer list. */
  buffer: ArrayBuffer;
}

/** Options of {@link Tensor.to}. */
export interface ToOptions {
  /**
   * What the elements are converted to, in place of their own dtype: float64 to float32,
   * complex128 to complex64, float32 to float16 or bfloat16 (rounded) and back, int64 to int32
   * and uint64 to uint32 (UnsupportedError for a value that does not fit). For tensors in
   * Pyodide's memory.
   */
  dtype?: DTypeName | undefined;
  /** `GPUBufferUsage` flags; default STORAGE | UNIFORM | COPY_SRC | COPY_DST. */
  usage?: number;
}

/** Options of {@link Tensor.fromGPUBuffer}. */
export interface FromGPUBufferOptions {
  /** The device that made the buffer; a `GPUBuffer` does not tell. */
  device: GPUDevice;
  shape: ArrayLike<number>;
  dtype: DTypeName;
  /** Bytes from the start of the buffer to element 0; default 0. */
  byteOffset?: number;
  /** In elements; default row-major. A strided tensor can be read, but not bound or copied. */
  strides?: ArrayLike<number>;
  /**
   * Bytes from `byteOffset` on that are this tensor's alone: others may overwrite what is behind
   * its elements there. Default: the elements, and the rest of the buffer if that is less than 16
   * bytes.
   */
  capacity?: number;
  /** Whether nobody may write to it; default false. */
  readOnly?: boolean;
  /** Whether sub-byte elements have a byte each. */
  padded?: boolean;
  /** Called once when nothing holds the buffer any more. Without it the buffer is borrowed. */
  release?: () => void;
}
