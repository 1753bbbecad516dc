/* Generated from tools/tables by `make generate`: do not edit. */

#ifndef DLW_GENERATED_H_
#define DLW_GENERATED_H_
/* DLDeviceType. */
enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18,
  kDLTPU = 19,
  kDLTPUHost = 20,
  kDLAscend = 21,
};
/* Those whose memory the CPU can read, as bits. */
#define DLW_HOST_DEVICES                                                         \
  (1u << kDLCPU | 1u << kDLCUDAHost | 1u << kDLROCMHost | 1u << kDLCUDAManaged | \
   1u << kDLTPUHost)
/* X(DLDeviceType). */
#define DLW_DEVICES(X) \
  X(kDLCPU)            \
  X(kDLCUDA)           \
  X(kDLCUDAHost)       \
  X(kDLOpenCL)         \
  X(kDLVulkan)         \
  X(kDLMetal)          \
  X(kDLVPI)            \
  X(kDLROCM)           \
  X(kDLROCMHost)       \
  X(kDLExtDev)         \
  X(kDLCUDAManaged)    \
  X(kDLOneAPI)         \
  X(kDLWebGPU)         \
  X(kDLHexagon)        \
  X(kDLMAIA)           \
  X(kDLTrn)            \
  X(kDLTPU)            \
  X(kDLTPUHost)        \
  X(kDLAscend)
/* Flags of DLManagedTensorVersioned: 64 bits wide, because `1UL << n` has 32 bits on
 * wasm32, and its complement would clear the upper half (CONFORMANCE rule 7). */
#define DLPACK_FLAG_BITMASK_READ_ONLY UINT64_C(1)
#define DLPACK_FLAG_BITMASK_IS_COPIED UINT64_C(2)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED UINT64_C(4)
/* Maximum number of axes, as in NumPy. */
#define DLW_MAX_NDIM 64
/* DLDataTypeCode. */
enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e3m4 = 7,
  kDLFloat8_e4m3 = 8,
  kDLFloat8_e4m3b11fnuz = 9,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat6_e2m3fn = 15,
  kDLFloat6_e3m2fn = 16,
  kDLFloat4_e2m1fn = 17,
  kDLBcomplex = 18,
};
/* X(code, bits, name) for each dtype. */
#define DLW_DTYPES(X)                               \
  X(kDLUInt, 8, "uint8")                            \
  X(kDLUInt, 16, "uint16")                          \
  X(kDLUInt, 32, "uint32")                          \
  X(kDLUInt, 64, "uint64")                          \
  X(kDLInt, 8, "int8")                              \
  X(kDLInt, 16, "int16")                            \
  X(kDLInt, 32, "int32")                            \
  X(kDLInt, 64, "int64")                            \
  X(kDLFloat, 16, "float16")                        \
  X(kDLFloat, 32, "float32")                        \
  X(kDLFloat, 64, "float64")                        \
  X(kDLComplex, 32, "complex32")                    \
  X(kDLComplex, 64, "complex64")                    \
  X(kDLComplex, 128, "complex128")                  \
  X(kDLBool, 8, "bool")                             \
  X(kDLBfloat, 16, "bfloat16")                      \
  X(kDLBcomplex, 32, "bcomplex32")                  \
  X(kDLFloat8_e3m4, 8, "float8_e3m4")               \
  X(kDLFloat8_e4m3, 8, "float8_e4m3")               \
  X(kDLFloat8_e4m3b11fnuz, 8, "float8_e4m3b11fnuz") \
  X(kDLFloat8_e4m3fn, 8, "float8_e4m3fn")           \
  X(kDLFloat8_e4m3fnuz, 8, "float8_e4m3fnuz")       \
  X(kDLFloat8_e5m2, 8, "float8_e5m2")               \
  X(kDLFloat8_e5m2fnuz, 8, "float8_e5m2fnuz")       \
  X(kDLFloat8_e8m0fnu, 8, "float8_e8m0fnu")         \
  X(kDLFloat6_e2m3fn, 6, "float6_e2m3fn")           \
  X(kDLFloat6_e3m2fn, 6, "float6_e3m2fn")           \
  X(kDLFloat4_e2m1fn, 4, "float4_e2m1fn")           \
  X(kDLInt, 1, "int1")                              \
  X(kDLUInt, 1, "uint1")                            \
  X(kDLInt, 2, "int2")                              \
  X(kDLUInt, 2, "uint2")                            \
  X(kDLInt, 4, "int4")                              \
  X(kDLUInt, 4, "uint4")
/* The bits that elements of one lane have. */
#define DLW_WIDTHS {1, 2, 4, 6, 8, 16, 32, 64, 128}
/* X(code, name, numbered, widths). numbered: names are `name` and the bits. Bit k of
 * widths is set if elements with the bits of DLW_WIDTHS[k] exist. */
#define DLW_DTYPE_CODES(X)                                \
  X(kDLInt, "int", 1, 0xf7)                               \
  X(kDLUInt, "uint", 1, 0xf7)                             \
  X(kDLFloat, "float", 1, 0xe0)                           \
  X(kDLBfloat, "bfloat", 1, 0x20)                         \
  X(kDLComplex, "complex", 1, 0x1c0)                      \
  X(kDLBool, "bool", 0, 0x10)                             \
  X(kDLFloat8_e3m4, "float8_e3m4", 0, 0x10)               \
  X(kDLFloat8_e4m3, "float8_e4m3", 0, 0x10)               \
  X(kDLFloat8_e4m3b11fnuz, "float8_e4m3b11fnuz", 0, 0x10) \
  X(kDLFloat8_e4m3fn, "float8_e4m3fn", 0, 0x10)           \
  X(kDLFloat8_e4m3fnuz, "float8_e4m3fnuz", 0, 0x10)       \
  X(kDLFloat8_e5m2, "float8_e5m2", 0, 0x10)               \
  X(kDLFloat8_e5m2fnuz, "float8_e5m2fnuz", 0, 0x10)       \
  X(kDLFloat8_e8m0fnu, "float8_e8m0fnu", 0, 0x10)         \
  X(kDLFloat6_e2m3fn, "float6_e2m3fn", 0, 0x8)            \
  X(kDLFloat6_e3m2fn, "float6_e3m2fn", 0, 0x8)            \
  X(kDLFloat4_e2m1fn, "float4_e2m1fn", 0, 0x4)            \
  X(kDLBcomplex, "bcomplex", 1, 0x40)
/* X(from_code, from_bits, to_code, to_bits, numbers, convert): the functions that
 * convert elements, of so many numbers. */
#define DLW_CONVERSIONS(X)                               \
  X(kDLFloat, 64, kDLFloat, 32, 1, float64_float32)      \
  X(kDLComplex, 128, kDLComplex, 64, 2, float64_float32) \
  X(kDLFloat, 32, kDLFloat, 16, 1, float32_float16)      \
  X(kDLFloat, 32, kDLBfloat, 16, 1, float32_bfloat16)    \
  X(kDLFloat, 16, kDLFloat, 32, 1, float16_float32)      \
  X(kDLBfloat, 16, kDLFloat, 32, 1, bfloat16_float32)    \
  X(kDLInt, 64, kDLInt, 32, 1, int64_int32)              \
  X(kDLUInt, 64, kDLUInt, 32, 1, uint64_uint32)
#endif
