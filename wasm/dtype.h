/* The dtypes that this library can move, by DLPack triple, name and buffer format. */
#ifndef DLW_DTYPE_H_
#define DLW_DTYPE_H_

#include "dlpack.h"

/* Characters, no pointers: on wasm each pointer in a table costs code to relocate. */
typedef struct {
  char name[18];  /* the array API's (or ml_dtypes') name, for example "float32" */
  char format[3]; /* PEP 3118 format in native order; "" when there is none */
  uint8_t code;
  uint8_t bits; /* a multiple of 8; lanes are always 1 */
} dlw_dtype;

/* Each returns an entry of a static table, or NULL when the dtype is not supported. */
const dlw_dtype *dlw_dtype_of(DLDataType dtype);
const dlw_dtype *dlw_dtype_named(const char *name);
/* `format` as in Py_buffer (NULL means "B"). Letters are read by item size, since `l`
 * and `n` have 4 bytes on wasm32 and 8 on 64-bit machines. Refuses other byte orders.
 */
const dlw_dtype *dlw_dtype_from_format(const char *format, int64_t itemsize);

static inline DLDataType dlw_dtype_triple(const dlw_dtype *dtype) {
  return (DLDataType){dtype->code, dtype->bits, 1};
}
static inline uint32_t dlw_itemsize(DLDataType dtype) { return dtype.bits / 8u; }
/* Bytes that an element's address must be a multiple of: complex numbers are pairs. */
static inline uint32_t dlw_alignment(DLDataType dtype) {
  return dtype.code == kDLComplex ? dtype.bits / 16u : dtype.bits / 8u;
}

#endif
