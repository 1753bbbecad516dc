import type { DType, DTypeName, TypedArray } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import type { Tensor } from "./tensor.js";

/** Where the elements of a tensor are, and how a hold on them is shared and dropped. */
export interface Storage {
  /** The memory that `data` views; throws where JS cannot see it. */
  bytes(tensor: Tensor): ArrayBufferLike;
  /** A second hold on the same memory. */
  share(tensor: Tensor): Tensor;
  /** A fresh, row-major, aligned copy in the same kind of memory. */
  pack(tensor: Tensor): Tensor;
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
}

let layer: DeviceLayer | null = null;

/** Called by webgpu/transfer.ts when it loads. */
export function registerDeviceLayer(made: DeviceLayer): void {
  layer = made;
}

/** The registered layer; throws where a bundle was made without it. */
export function deviceLayer(): DeviceLayer {
  if (layer !== null) return layer;
  throw new UnsupportedError('the WebGPU layer is not loaded: import "dlpack-web"');
}

/** Where `read()` may put elements: an array of the same number of bytes, or a CPU tensor. */
export type Target = TypedArray | Tensor;

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
  /** Called once when nothing holds the buffer any more. Without it the buffer is borrowed. */
  release?: () => void;
}
