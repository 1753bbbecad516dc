/* The dtypes of DLPack 1.3, and bcomplex32 of its main branch: their names, sizes and
 * buffer formats. */
#ifndef DLW_DTYPE_H_
#define DLW_DTYPE_H_

#include "dlpack.h"

/* Whether DLPack gives the triple a meaning: the code has that width, and there is at
 * least one lane. kDLOpaqueHandle, which is not for exchange, is unknown. */
int dlw_dtype_known(DLDataType dtype);

#define DLW_DTYPE_NAME 40 /* room for any name */
/* The name in the array API and ml_dtypes, "float32", or "float32x4" with lanes; "(code
 * 9, bits 3, lanes 1)" if unknown. Returns `name`. */
const char *dlw_dtype_name(DLDataType dtype, char name[DLW_DTYPE_NAME]);

/* The PEP 3118 format in native order, static; NULL when there is none. */
const char *dlw_dtype_format(DLDataType dtype);

/* The dtype of a buffer with this format (NULL means "B"); code is kDLOpaqueHandle when
 * there is none. Letters are read by item size, since `l` and `n` have 4 bytes on
 * wasm32 and 8 on 64-bit machines. Refuses other byte orders. */
DLDataType dlw_dtype_from_format(const char *format, int64_t itemsize);

/* One integer for the triple, as in JavaScript and Python: its bytes in memory. */
static inline uint32_t dlw_dtype_pack(DLDataType dtype) {
  return dtype.code | (uint32_t)dtype.bits << 8 | (uint32_t)dtype.lanes << 16;
}
static inline DLDataType dlw_dtype_unpack(uint32_t packed) {
  return (DLDataType){(uint8_t)packed, (uint8_t)(packed >> 8),
                      (uint16_t)(packed >> 16)};
}

static inline int dlw_is_complex(DLDataType dtype) {
  return dtype.code == kDLComplex || dtype.code == kDLBcomplex;
}
/* Bits from an element to the next. Sub-byte elements are packed without gaps, in
 * little bit-endian order, unless `flags` has IS_SUBBYTE_TYPE_PADDED: then each has a
 * byte. */
static inline uint32_t dlw_element_bits(DLDataType dtype, uint64_t flags) {
  if (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) return 8;
  return (uint32_t)dtype.bits * dtype.lanes;
}
/* Bytes that one element alone takes. */
static inline uint32_t dlw_itemsize(DLDataType dtype) {
  return ((uint32_t)dtype.bits * dtype.lanes + 7) / 8;
}
/* Bytes that an element's address must be a multiple of: complex numbers are pairs. */
static inline uint32_t dlw_alignment(DLDataType dtype) {
  uint32_t bytes = dtype.bits / (dlw_is_complex(dtype) ? 16u : 8u);
  return bytes > 0 ? bytes : 1;
}

#endif
