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

/** The heap as 32-bit words: Pyodide's `HEAPU32` and `HEAP32`, current after growth. */
export interface Words {
  readonly HEAPU32: Uint32Array;
  readonly HEAP32: Int32Array;
}

/** The int64 at word `index`. Exact up to 2^53, which every size here is below. */
export function readInt64(words: Words, index: number): number {
  // Indices come from C and lie inside the heap, hence the assertions.
  return (words.HEAPU32[index] as number) + (words.HEAP32[index + 1] as number) * 4294967296;
}

/** Writes the int64 at word `index`. */
export function writeInt64(words: Words, index: number, value: number): void {
  words.HEAPU32[index] = value >>> 0;
  words.HEAP32[index + 1] = Math.floor(value / 4294967296);
}

/** Reads `ndim` int64s that begin at byte `address`. */
export function readDims(words: Words, address: number, ndim: number): number[] {
  const dims: number[] = [];
  for (let i = 0, at = address >>> 2; i < ndim; i++, at += 2) dims.push(readInt64(words, at));
  return dims;
}

/**
 * Whether the strides at byte `address` describe row-major order without gaps. Strides of
 * dimensions of size 1 carry no information, and a tensor without elements has any layout.
 */
export function stridesAreRowMajor(words: Words, address: number, shape: number[]): boolean {
  let expected = 1;
  let contiguous = true;
  for (let i = shape.length - 1, at = (address >>> 2) + 2 * i; i >= 0; i--, at -= 2) {
    const dim = shape[i] as number;
    if (dim === 0) return true;
    if (dim !== 1 && readInt64(words, at) !== expected) contiguous = false;
    expected *= dim;
  }
  return contiguous;
}
