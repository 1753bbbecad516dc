/** Generated from tools/tables by `make generate`: do not edit. */

/** In .npy files, by dtypes. */
export const NPY: Record<string, string> = {
  bool: "b1",
  int8: "i1",
  int16: "i2",
  int32: "i4",
  int64: "i8",
  uint8: "u1",
  uint16: "u2",
  uint32: "u4",
  uint64: "u8",
  float16: "f2",
  float32: "f4",
  float64: "f8",
  complex64: "c8",
  complex128: "c16",
};

/** By safetensors' names. */
export const SAFETENSORS: Record<string, string> = {
  BOOL: "bool",
  I8: "int8",
  I16: "int16",
  I32: "int32",
  I64: "int64",
  U8: "uint8",
  U16: "uint16",
  U32: "uint32",
  U64: "uint64",
  F8_E4M3: "float8_e4m3fn",
  F8_E4M3FNUZ: "float8_e4m3fnuz",
  F8_E5M2: "float8_e5m2",
  F8_E5M2FNUZ: "float8_e5m2fnuz",
  F8_E8M0: "float8_e8m0fnu",
  F16: "float16",
  BF16: "bfloat16",
  F32: "float32",
  F64: "float64",
  C64: "complex64",
};

/** Bits, not loaded. */
export const SUB_BYTE: Record<string, number> = { F4: 4, F6_E2M3: 6, F6_E3M2: 6 };

/** What ml_dtypes writes. */
export const ML_DTYPES: Record<string, string> = {
  V1: "float8_e4m3fn",
  V2: "bfloat16",
  f1: "float8_e5m2",
};
