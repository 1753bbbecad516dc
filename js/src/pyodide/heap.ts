import { CPU_DEVICE } from "../core/device.js";
import { IS_SUBBYTE_TYPE_PADDED, READ_ONLY, WEBGPU } from "../core/dlpack.js";
import { bytesOf, type DType, dtypePacked } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import {
  type Chunk,
  ManagedTensor,
  type Place,
  type Storage,
  unclonable,
} from "../core/managed.js";
import type { Layout } from "../core/views.js";
import { tensorOn } from "../webgpu/buffers/buffers.js";
import { retainSlot, slotOf } from "../webgpu/buffers/table.js";
import type { CoreExports, PyodideHost } from "./host.js";
import * as L from "./layout.js";

/**
 * What is asked of {@link HeapStorage.borrow}, as bits that wasm/bridge.c has, too: `IN_PLACE` forbids a
 * copy of the producer's; what will be `COPIED` may be misaligned.
 */
export const [WRITABLE, IN_PLACE, COPIED] = [1, 2, 4] as const;

/** Storage in one Pyodide's memory. `handle` of its tensors is a hold in the C core. */
export class HeapStorage implements Storage {
  readonly guard = unclonable;
  /** Growth detaches old views, so `data` detects it. */
  readonly mayBeReplaced = false;
  readonly memory: { readonly buffer: ArrayBufferLike };
  readonly #scratch: number;
  readonly #callAt: number;
  #call: Float64Array = new Float64Array(0);

  constructor(readonly host: PyodideHost) {
    this.memory = host.memory;
    this.#scratch = host.core.scratch() >>> 2;
    this.#callAt = host.core.call() >>> 0;
  }

  bytes(): ArrayBufferLike {
    return this.host.memory.buffer;
  }

  /** A tensor over the memory of a Python object. The hottest path: a closure would cost it. */
  borrow(object: number, asked = 0): ManagedTensor {
    const { host } = this;
    const saved = host.begin();
    let address: number;
    try {
      address = host.core.borrow(object, asked);
    } finally {
      host.end(saved);
    }
    return this.adopt(address);
  }

  release(handle: number): void {
    const { host } = this;
    const saved = host.begin();
    try {
      host.core.release(handle);
    } finally {
      host.end(saved);
    }
  }

  share(tensor: ManagedTensor): number {
    return this.#handleAt(this.host.enter((core) => core.share(tensor.handle)));
  }

  view(tensor: ManagedTensor, { shape, strides, offset }: Layout): Place {
    this.#writeScratch(shape, strides, 0);
    const call = (core: CoreExports) => core.view(tensor.handle, shape.length, offset);
    return this.#placeAt(this.host.enter(call));
  }

  pack(tensor: ManagedTensor): Place {
    return this.#placeAt(this.host.enter((core) => core.pack(tensor.handle)));
  }

  chunk(tensor: ManagedTensor, dtype: DType, first: number): Chunk {
    const { host } = this;
    const count = host.enter((core) => core.chunk(tensor.handle, dtype.packed, first));
    if (count === 0) host.fail();
    const { words, buffer } = host.memory;
    const start = L.readInt64(words, this.#scratch);
    return { count, bytes: new Uint8Array(buffer, start, bytesOf(dtype, count)) };
  }

  /** The doubles of the kernel call that C describes; see layout.ts. */
  kernelCall(): Float64Array {
    const { buffer } = this.host.memory;
    if (this.#call.buffer !== buffer) {
      this.#call = new Float64Array(buffer, this.#callAt, L.CALL_LENGTH);
    }
    return this.#call;
  }

  /** Fresh memory, aligned to 256 bytes, contents undefined. */
  empty(shape: readonly number[], dtype: DType): ManagedTensor {
    this.#writeScratch(shape, null, 0);
    const call = (core: CoreExports) => core.empty(shape.length, dtype.packed, dtype.flags);
    return this.adopt(this.host.enter(call));
  }

  /** A C managed tensor, held by the handle returned, that takes over one reference of `slot`. */
  wrap(slot: number, tensor: ManagedTensor): number {
    const { device, shape, strides, dtype, readOnly, start } = tensor;
    this.#writeScratch(shape, strides, start);
    const flags = dtype.flags | (readOnly ? READ_ONLY : 0);
    const strided = strides === null ? 0 : 1;
    const call = (core: CoreExports) =>
      core.wrap(slot, device.id, shape.length, dtype.packed, flags, strided);
    return this.#handleAt(this.host.enter(call));
  }

  /**
   * A WebGPU tensor that a `dlw_tensor` describes, without a hold: for one call, after which the
   * caller detaches it.
   */
  peek(address: number): ManagedTensor {
    return this.#read(address, 0, slotOf);
  }

  /** The tensor that a `dlw_tensor` describes. Takes over its hold, also if it throws. */
  adopt(address: number): ManagedTensor {
    const handle = this.#handleAt(address);
    let tensor: ManagedTensor;
    try {
      tensor = this.#read(address, handle, retainSlot);
    } catch (error) {
      this.release(handle);
      throw error;
    }
    if (tensor.storage !== this) this.release(handle); // it holds a GPUBuffer of its own
    return tensor;
  }

  #read(address: number, handle: number, slotAt: typeof slotOf): ManagedTensor {
    const words = this.host.memory.words;
    // Unsigned shifts, since addresses beyond 2 GiB are negative numbers here.
    const at = address >>> 2;
    const flags = words[at + L.FLAGS] as number;
    const dtype = dtypePacked(words[at + L.DTYPE] as number, flags & IS_SUBBYTE_TYPE_PADDED);
    const data = (words[at + L.DATA] as number) >>> 0;
    const offset = L.readInt64(words, at + L.BYTE_OFFSET);
    const readOnly = (flags & READ_ONLY) !== 0;
    const shapeAt = (words[at + L.SHAPE] as number) >>> 2;
    const stridesAt = (words[at + L.STRIDES] as number) >>> 2;
    const ndim = words[at + L.NDIM] as number;

    // Strides of axes of length 1 carry no information, nor do those of tensors without elements.
    const shape = new Array<number>(ndim);
    let size = 1;
    let rowMajor = true;
    for (let i = ndim - 1; i >= 0; i--) {
      const dim = L.readInt64(words, shapeAt + 2 * i);
      const stride = stridesAt === 0 ? size : L.readInt64(words, stridesAt + 2 * i);
      if (dim !== 1 && stride !== size) rowMajor = false;
      shape[i] = dim;
      size *= dim;
    }
    if (size === 0) rowMajor = true;

    const strides = rowMajor ? null : shape.map((_, i) => L.readInt64(words, stridesAt + 2 * i));
    // Other kinds of memory that C accepts are host memory, too: pinned by CUDA, for example.
    const onCPU = words[at + L.DEVICE_TYPE] !== WEBGPU;
    if (!rowMajor && dtype.step % 1 !== 0) {
      throw new UnsupportedError(
        `a strided ${dtype.name} cannot come to JS: packed sub-byte elements must be row-major; ` +
          "copy it first",
      );
    }
    if (!onCPU) return tensorOn(slotAt(data), offset, dtype, shape, readOnly, strides);
    return new ManagedTensor(
      this,
      handle,
      data + offset,
      dtype,
      shape,
      strides,
      CPU_DEVICE,
      readOnly,
    );
  }

  /** The handle of a `dlw_tensor`. */
  #handleAt(address: number): number {
    if (address === 0) this.host.fail();
    return (this.host.memory.words[(address >>> 2) + L.HANDLE] as number) >>> 0;
  }

  /** Handle and memory of a `dlw_tensor` on the CPU. */
  #placeAt(address: number): Place {
    const handle = this.#handleAt(address);
    const data = (this.host.memory.words[(address >>> 2) + L.DATA] as number) >>> 0;
    return { storage: this, handle, start: data };
  }

  #writeScratch(
    shape: readonly number[],
    strides: readonly number[] | null,
    byteOffset: number,
  ): void {
    const { words } = this.host.memory;
    const write = (values: readonly number[], at: number) => {
      values.forEach((value, i) => {
        L.writeInt64(words, at + 2 * i, value);
      });
    };
    write(shape, this.#scratch);
    if (strides !== null) write(strides, this.#scratch + L.SCRATCH_STRIDES);
    L.writeInt64(words, this.#scratch + L.SCRATCH_BYTE_OFFSET, byteOffset);
  }
}
