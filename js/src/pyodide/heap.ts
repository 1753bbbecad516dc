import { bytesOf, type DType, dtypePacked } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import type { Storage } from "../core/storage.js";
import { CPU_DEVICE, Tensor } from "../core/tensor.js";
import * as L from "./layout.js";

/** The functions `dlw_bridge_…` of wasm/bridge.c. 0 for an address is an error. */
export interface CoreExports {
  scratch(): number;
  borrow(object: number, writable: number): number;
  empty(ndim: number, dtype: number, flags: number): number;
  wrap(gpu: number, deviceId: number, ndim: number, dtype: number, flags: number): number;
  share(handle: number): number;
  pack(handle: number): number;
  chunk(handle: number, dtype: number, first: number): number;
  release(handle: number): number;
  error_kind(): number;
  error_text(): number;
  on_drop(fn: number): void;
}

/** Pyodide as the heap needs it; pyodide.ts makes one and knows how. */
export interface WasmHost {
  readonly memory: L.Memory;
  readonly core: CoreExports;
  /** Whether Python code may suspend the JS frames below it; see {@link WasmHost.enter}. */
  readonly suspender: { value: unknown };
  checkGil(): void;
  /** Calls C as Pyodide calls Python: with the GIL, and with suspension ruled out meanwhile. */
  enter<R>(call: (core: CoreExports) => R): R;
  /** Throws the stored Python exception as one of our errors, with the PythonError as cause. */
  fail(): never;
}

/** Makes the JS tensor over a GPU slot, with a reference of its own; webgpu/buffers.ts has it. */
export type GPUAdopter = (
  slot: number,
  byteOffset: number,
  dtype: DType,
  shape: number[],
  readOnly: boolean,
  strides: readonly number[] | null,
) => Tensor;

/** Storage in one Pyodide's memory. `_handle` of its tensors is a hold in the C core. */
export class HeapStorage implements Storage {
  readonly host: WasmHost;
  readonly memory: { readonly buffer: ArrayBufferLike };
  readonly #adoptGPU: GPUAdopter;
  readonly #scratch: number;

  constructor(host: WasmHost, adoptGPU: GPUAdopter) {
    this.host = host;
    this.memory = host.memory;
    this.#adoptGPU = adoptGPU;
    this.#scratch = host.core.scratch() >>> 2;
  }

  bytes(): ArrayBufferLike {
    return this.memory.buffer;
  }

  /** A tensor over the memory of a Python object. The hottest path: `enter` is written out. */
  borrow(object: number, writable: boolean): Tensor {
    const { host } = this;
    const { suspender } = host;
    host.checkGil();
    const saved = suspender.value;
    suspender.value = false;
    let address: number;
    try {
      address = host.core.borrow(object, writable ? 1 : 0);
    } finally {
      suspender.value = saved;
    }
    return this.adopt(address);
  }

  release(handle: number): void {
    const { host } = this;
    const { suspender } = host;
    host.checkGil();
    const saved = suspender.value;
    suspender.value = false;
    try {
      host.core.release(handle);
    } finally {
      suspender.value = saved;
    }
  }

  share(tensor: Tensor): Tensor {
    return this.adopt(this.host.enter((core) => core.share(tensor._handle)));
  }

  pack(tensor: Tensor): Tensor {
    return this.adopt(this.host.enter((core) => core.pack(tensor._handle)));
  }

  chunk(tensor: Tensor, dtype: DType, first: number): { count: number; bytes: Uint8Array } {
    const { host } = this;
    const count = host.enter((core) => core.chunk(tensor._handle, dtype.packed, first));
    if (count === 0) host.fail();
    const { words, buffer } = host.memory;
    const start = L.readInt64(words, this.#scratch);
    return { count, bytes: new Uint8Array(buffer, start, bytesOf(dtype, Math.max(count, 0))) };
  }

  /** Fresh memory, aligned to 256 bytes, contents undefined. */
  empty(shape: readonly number[], dtype: DType): Tensor {
    this.#writeScratch(shape, 0);
    const call = (core: CoreExports) => core.empty(shape.length, dtype.packed, dtype.flags);
    return this.adopt(this.host.enter(call));
  }

  /** A C managed tensor, held by the handle returned, that takes over one reference of `slot`. */
  wrap(slot: number, tensor: Tensor): number {
    const { shape, device, _type, readOnly, byteOffset } = tensor;
    this.#writeScratch(shape, byteOffset);
    const flags = _type.flags | (readOnly ? L.READ_ONLY : 0);
    const address = this.host.enter((core) =>
      core.wrap(slot, device.id, shape.length, _type.packed, flags),
    );
    if (address === 0) this.host.fail();
    return (this.host.memory.words[(address >>> 2) + L.HANDLE] as number) >>> 0;
  }

  /** The tensor that a `dlw_tensor` describes. Takes its hold over, also where it throws. */
  adopt(address: number): Tensor {
    if (address === 0) this.host.fail();
    const words = this.host.memory.words;
    // Unsigned shifts, since addresses beyond 2 GiB are negative numbers here.
    const at = address >>> 2;
    const handle = (words[at + L.HANDLE] as number) >>> 0;
    const flags = words[at + L.FLAGS] as number;
    const dtype = dtypePacked(words[at + L.DTYPE] as number, flags & L.SUBBYTE_PADDED);
    const data = (words[at + L.DATA] as number) >>> 0;
    const offset = L.readInt64(words, at + L.BYTE_OFFSET);
    const readOnly = (flags & L.READ_ONLY) !== 0;
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

    const strides = rowMajor ? null : L.readDims(words, stridesAt, ndim);
    // Memory of other kinds that C lets pass is the host's, too: pinned by CUDA, for example.
    const onCPU = words[at + L.DEVICE_TYPE] !== L.WEBGPU;
    const addressable = rowMajor || dtype.step % 1 === 0;
    if (onCPU && addressable) {
      return new Tensor(this, handle, data + offset, dtype, shape, strides, CPU_DEVICE, readOnly);
    }
    try {
      if (addressable) return this.#adoptGPU(data, offset, dtype, shape, readOnly, strides);
      throw new UnsupportedError(
        `a strided ${dtype.name} cannot come to JS: packed sub-byte elements must be row-major; ` +
          "copy it first",
      );
    } finally {
      this.release(handle);
    }
  }

  #writeScratch(shape: readonly number[], byteOffset: number): void {
    const { words } = this.host.memory;
    shape.forEach((dim, i) => {
      L.writeInt64(words, this.#scratch + 2 * i, dim);
    });
    L.writeInt64(words, this.#scratch + L.SCRATCH_BYTE_OFFSET, byteOffset);
  }
}
