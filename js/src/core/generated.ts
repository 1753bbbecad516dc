/** Generated from tools/tables by `make generate`: do not edit. */

import type { Float16Array as Halves } from "./globals.js";
/** The typed array that `tensor.data` is, by dtype. */
export interface DTypeArrays {
  uint8: Uint8Array;
  uint16: Uint16Array;
  uint32: Uint32Array;
  uint64: BigUint64Array;
  int8: Int8Array;
  int16: Int16Array;
  int32: Int32Array;
  int64: BigInt64Array;
  /** Bits in a `Uint16Array` where the engine has no `Float16Array`. */
  float16: Halves | Uint16Array;
  float32: Float32Array;
  float64: Float64Array;
  /** Interleaved real and imaginary parts. */
  complex32: Halves | Uint16Array;
  /** Interleaved real and imaginary parts. */
  complex64: Float32Array;
  /** Interleaved real and imaginary parts. */
  complex128: Float64Array;
  bool: Uint8Array;
  bfloat16: Uint8Array;
  /** Two bfloat16, the real and the imaginary part. */
  bcomplex32: Uint8Array;
  float8_e3m4: Uint8Array;
  float8_e4m3: Uint8Array;
  float8_e4m3b11fnuz: Uint8Array;
  float8_e4m3fn: Uint8Array;
  float8_e4m3fnuz: Uint8Array;
  float8_e5m2: Uint8Array;
  float8_e5m2fnuz: Uint8Array;
  float8_e8m0fnu: Uint8Array;
  /** Elements of less than a byte are packed without gaps, from the lowest bit of a byte on. */
  float6_e2m3fn: Uint8Array;
  float6_e3m2fn: Uint8Array;
  float4_e2m1fn: Uint8Array;
  int1: Uint8Array;
  uint1: Uint8Array;
  int2: Uint8Array;
  uint2: Uint8Array;
  int4: Uint8Array;
  uint4: Uint8Array;
}
const { Float16Array = Uint16Array } = globalThis as unknown as {
  Float16Array?: typeof Uint16Array;
};
/** Of each dtype: name, code, bits, and the class of `data` if that is not Uint8Array. */
export const DTYPES = [
  ["uint8", 1, 8],
  ["uint16", 1, 16, Uint16Array],
  ["uint32", 1, 32, Uint32Array],
  ["uint64", 1, 64, BigUint64Array],
  ["int8", 0, 8, Int8Array],
  ["int16", 0, 16, Int16Array],
  ["int32", 0, 32, Int32Array],
  ["int64", 0, 64, BigInt64Array],
  ["float16", 2, 16, Float16Array],
  ["float32", 2, 32, Float32Array],
  ["float64", 2, 64, Float64Array],
  ["complex32", 5, 32, Float16Array],
  ["complex64", 5, 64, Float32Array],
  ["complex128", 5, 128, Float64Array],
  ["bool", 6, 8],
  ["bfloat16", 4, 16],
  ["bcomplex32", 18, 32],
  ["float8_e3m4", 7, 8],
  ["float8_e4m3", 8, 8],
  ["float8_e4m3b11fnuz", 9, 8],
  ["float8_e4m3fn", 10, 8],
  ["float8_e4m3fnuz", 11, 8],
  ["float8_e5m2", 12, 8],
  ["float8_e5m2fnuz", 13, 8],
  ["float8_e8m0fnu", 14, 8],
  ["float6_e2m3fn", 15, 6],
  ["float6_e3m2fn", 16, 6],
  ["float4_e2m1fn", 17, 4],
  ["int1", 0, 1],
  ["uint1", 1, 1],
  ["int2", 0, 2],
  ["uint2", 1, 2],
  ["int4", 0, 4],
  ["uint4", 1, 4],
] as const;
/** What elements may become during a copy. */
export interface Conversions {
  float64: "float32";
  complex128: "complex64";
  float32: "float16" | "bfloat16";
  float16: "float32";
  bfloat16: "float32";
  int64: "int32";
  uint64: "uint32";
}
export const CONVERSIONS = {
  float64: ["float32"],
  complex128: ["complex64"],
  float32: ["float16", "bfloat16"],
  float16: ["float32"],
  bfloat16: ["float32"],
  int64: ["int32"],
  uint64: ["uint32"],
};
/** The same, for messages. */
export const BECOME =
  "float64 to float32, complex128 to complex64, float32 to float16 or bfloat16, float16 to float32, bfloat16 to float32, int64 to int32, uint64 to uint32";

/** What makes a tensor of other values, by a property of them. */
export const MADE_BY: Record<string, string> = {
  ort_tensor: "transformers",
  liteRtTensorBuffer: "litert",
  dims: "ort",
  dataId: "tfjs",
  weakType: "jax",
  nullCount: "arrow",
  itemSize: "three",
  stride: "ndarray",
  elemSize1: "opencv",
  numRows: "arrow",
  data: "Tensor.fromTypedArray",
  width: "webgpu.fromImage",
};

/** For dtypes that WGSL lacks. */
export const NARROWER: Record<string, string> = {
  float64: "float32",
  complex128: "complex64",
  int64: "int32",
  uint64: "uint32",
};
