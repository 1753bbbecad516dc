/** One slot of the table of buffers, and which bytes of its buffer are a tensor's. */
import type { ManagedTensor } from "../../core/managed.js";
import type { DeviceRecord } from "../device/device.js";
import type { BufferRecord, Extent } from "../errors/record.js";

/** One entry of the table: tensors that share a reference to a buffer. */
export interface Slot {
  /** Its handle; of a free slot the next one. */
  handle: number;
  device: DeviceRecord | null;
  buffer: BufferRecord | null;
  /** Called once when the last reference goes: notifies the owner of a foreign buffer. */
  release: (() => void) | null;
  /** Number of JS tensors and C managed tensors that reference it. */
  refs: number;
  /**
   * Bytes from the start up to the end of the whole tensor's elements; a fraction if they end
   * within a byte.
   */
  used: number;
  /** Bytes from the start of the buffer that belong to no other tensor. */
  end: number;
  /** Of a free slot: the one to use after it. */
  next: number;
}

/** A slot in use. */
export type LiveSlot = Slot & { readonly device: DeviceRecord; readonly buffer: BufferRecord };

/** `GPUBufferUsage`, which is a global only where WebGPU is. */
export const Usage = {
  MAP_READ: 1,
  MAP_WRITE: 2,
  COPY_SRC: 4,
  COPY_DST: 8,
  INDEX: 16,
  VERTEX: 32,
  UNIFORM: 64,
  STORAGE: 128,
  INDIRECT: 256,
  QUERY_RESOLVE: 512,
} as const;

/** The default usage of buffers made here: all uses of tensors. */
export const DEFAULT_USAGE = Usage.STORAGE | Usage.UNIFORM | Usage.COPY_SRC | Usage.COPY_DST;

/** The least multiple of `step` that is not below `n`. Exact beyond 2^32. */
export function roundUp(n: number, step: number): number {
  return Math.ceil(n / step) * step;
}

/** The bytes from a tensor's first element to its last. */
export function extentIn({ buffer }: LiveSlot, tensor: ManagedTensor): Extent {
  if (tensor.strides === null) {
    const first = Math.floor(tensor.start);
    return { buffer, start: first, end: first + tensor.nbytes };
  }
  const { start, bytes } = tensor.span;
  return { buffer, start, end: start + bytes };
}

/** Bytes from element 0 on that only the tensor uses. A view may be followed by another view's elements. */
export function capacityIn({ used, end }: LiveSlot, tensor: ManagedTensor): number {
  const { start, bytes } = tensor.span;
  const stop = start + (tensor.strides === null ? tensor.exact : bytes);
  // A byte that the elements end within may be a neighbour's, too.
  return (stop >= used ? end : Math.floor(stop)) - tensor.start;
}
