import { MAX_NDIM } from "../core/dlpack.js";

/**
 * Offsets of the fields of `DLManagedTensorVersioned` and `dlw_tensor` on wasm32, in units of four
 * bytes. The C core asserts the same numbers with `_Static_assert`; this is the only other place
 * that has them. The struct is aligned to 8.
 */
export const FLAGS = 16 >> 2;
export const DATA = 24 >> 2;
export const DEVICE_TYPE = 28 >> 2;
export const NDIM = 36 >> 2;
export const DTYPE = 40 >> 2;
export const SHAPE = 44 >> 2;
export const STRIDES = 48 >> 2;
export const BYTE_OFFSET = 56 >> 2;
export const HANDLE = 64 >> 2;

/**
 * The scratch area through which arguments reach C, of wasm/bridge.c:
 * `{ int64 shape[64]; int64 strides[64]; uint64 byte_offset; }`.
 */
export const SCRATCH_STRIDES = (MAX_NDIM * 8) >> 2;
export const SCRATCH_BYTE_OFFSET = (2 * MAX_NDIM * 8) >> 2;

/**
 * A call of a kernel, of wasm/bridge.c, in doubles: `{ site, workgroups[3], count; { kind, value }
 * arguments[32]; key[40] }`.
 */
export const CALL_ARGUMENTS = 5;
export const CALL_KEY = CALL_ARGUMENTS + 2 * 32;
export const CALL_LENGTH = CALL_KEY + 40;

/** The source of wasm memory: Pyodide's module, whose views are current after growth. */
export interface MemorySource {
  readonly HEAPU8: Uint8Array;
  readonly HEAP32: Int32Array;
}

/**
 * Views of wasm memory that are kept until growth detaches them: the module is a large object,
 * where every look-up costs as much as making a typed array.
 */
export class Memory {
  #words: Int32Array;

  constructor(private readonly source: MemorySource) {
    this.#words = source.HEAP32;
  }

  get buffer(): ArrayBufferLike {
    return this.words.buffer;
  }

  /** The memory as 32-bit words; not to be kept across calls of C. */
  get words(): Int32Array {
    if (this.#words.length === 0) this.#words = this.source.HEAP32;
    return this.#words;
  }
}

/** The int64 at word `index`. Exact up to 2^53, which every size here is below. */
export function readInt64(words: Int32Array, index: number): number {
  // Indices come from C and lie inside the memory, hence the assertions.
  const low = words[index] as number;
  const high = words[index + 1] as number;
  // Nearly all fit into 32 bits, and engines compute with integers faster than with doubles.
  return high === low >> 31 ? low : (low >>> 0) + high * 4294967296;
}

/** Writes the int64 at word `index`. */
export function writeInt64(words: Int32Array, index: number, value: number): void {
  words[index] = value;
  words[index + 1] = Math.floor(value / 4294967296);
}
