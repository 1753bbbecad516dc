/**
 * Where the fields of a `DLManagedTensorVersioned` and of `dlw_tensor` lie on wasm32, in units of
 * four bytes. The C core asserts the same numbers with `_Static_assert`; this is the only other
 * place that has them. The struct is aligned to 8.
 */
export const FLAGS = 16 >> 2;
export const DATA = 24 >> 2;
export const DEVICE_TYPE = 28 >> 2;
export const DEVICE_ID = 32 >> 2;
export const NDIM = 36 >> 2;
export const DTYPE = 40 >> 2;
export const SHAPE = 44 >> 2;
export const STRIDES = 48 >> 2;
export const BYTE_OFFSET = 56 >> 2;
export const HANDLE = 64 >> 2;

/** `flags` of DLPack 1.3. */
export const READ_ONLY = 1;

/** `DLDeviceType` of DLPack 1.3. */
export const CPU = 1;
export const WEBGPU = 15;

/** The scratch area through which arguments reach C: `{ int64 shape[64]; uint64 byte_offset; }`. */
export const MAX_NDIM = 64;
export const SCRATCH_BYTE_OFFSET = (MAX_NDIM * 8) >> 2;

/** Where wasm memory is found: Pyodide's module, whose views are current after growth. */
export interface MemorySource {
  readonly HEAPU8: Uint8Array;
  readonly HEAPU32: Uint32Array;
  readonly HEAP32: Int32Array;
}

/**
 * Views of wasm memory that are kept until growth detaches them: the module is a large object, in
 * which every look-up costs as much as making a typed array.
 */
export class Memory {
  readonly #source: MemorySource;
  #buffer: ArrayBufferLike;
  #u32: Uint32Array;
  #i32: Int32Array;

  constructor(source: MemorySource) {
    this.#source = source;
    this.#buffer = source.HEAPU8.buffer;
    this.#u32 = source.HEAPU32;
    this.#i32 = source.HEAP32;
  }

  get buffer(): ArrayBufferLike {
    if (this.#u32.length === 0) this.#refresh();
    return this.#buffer;
  }

  /** Unsigned words. */
  get u32(): Uint32Array {
    if (this.#u32.length === 0) this.#refresh();
    return this.#u32;
  }

  /** Signed words. */
  get i32(): Int32Array {
    if (this.#u32.length === 0) this.#refresh();
    return this.#i32;
  }

  #refresh(): void {
    this.#buffer = this.#source.HEAPU8.buffer;
    this.#u32 = this.#source.HEAPU32;
    this.#i32 = this.#source.HEAP32;
  }

  /** The int64 at word `index`. Exact up to 2^53, which every size here is below. */
  readInt64(index: number): number {
    // Indices come from C and lie inside the memory, hence the assertions.
    return (this.u32[index] as number) + (this.i32[index + 1] as number) * 4294967296;
  }

  /** Writes the int64 at word `index`. */
  writeInt64(index: number, value: number): void {
    this.u32[index] = value >>> 0;
    this.i32[index + 1] = Math.floor(value / 4294967296);
  }

  /** Reads `count` int64s that begin at byte `address`. */
  readDims(address: number, count: number): number[] {
    const dims = new Array<number>(count);
    for (let i = 0, at = address >>> 2; i < count; i++, at += 2) dims[i] = this.readInt64(at);
    return dims;
  }

  /**
   * Whether the strides at byte `address` describe row-major order without gaps. Strides of
   * dimensions of size 1 carry no information, and a tensor without elements has any layout.
   */
  isRowMajor(address: number, shape: readonly number[]): boolean {
    let expected = 1;
    let rowMajor = true;
    for (let i = shape.length - 1, at = (address >>> 2) + 2 * i; i >= 0; i--, at -= 2) {
      const dim = shape[i] as number;
      if (dim === 0) return true;
      if (dim !== 1 && this.readInt64(at) !== expected) rowMajor = false;
      expected *= dim;
    }
    return rowMajor;
  }
}
