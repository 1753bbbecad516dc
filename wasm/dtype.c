#include "dtype.h"

#include <string.h>

/* Searched from the top for every tensor: the commonest first. */
static const dlw_dtype TABLE[] = {
    {"float32", "f", kDLFloat, 32},
    {"float64", "d", kDLFloat, 64},
    {"float16", "e", kDLFloat, 16},
    {"bool", "?", kDLBool, 8},
    {"int8", "b", kDLInt, 8},
    {"int16", "h", kDLInt, 16},
    {"int32", "i", kDLInt, 32},
    {"int64", "q", kDLInt, 64},
    {"uint8", "B", kDLUInt, 8},
    {"uint16", "H", kDLUInt, 16},
    {"uint32", "I", kDLUInt, 32},
    {"uint64", "Q", kDLUInt, 64},
    {"complex64", "Zf", kDLComplex, 64},
    {"complex128", "Zd", kDLComplex, 128},
    {"bfloat16", "", kDLBfloat, 16},
    {"float8_e3m4", "", kDLFloat8_e3m4, 8},
    {"float8_e4m3", "", kDLFloat8_e4m3, 8},
    {"float8_e4m3b11fnuz", "", kDLFloat8_e4m3b11fnuz, 8},
    {"float8_e4m3fn", "", kDLFloat8_e4m3fn, 8},
    {"float8_e4m3fnuz", "", kDLFloat8_e4m3fnuz, 8},
    {"float8_e5m2", "", kDLFloat8_e5m2, 8},
    {"float8_e5m2fnuz", "", kDLFloat8_e5m2fnuz, 8},
    {"float8_e8m0fnu", "", kDLFloat8_e8m0fnu, 8},
};
#define COUNT (sizeof TABLE / sizeof TABLE[0])

static const dlw_dtype *find(uint8_t code, uint64_t bits) {
  for (size_t i = 0; i < COUNT; i++) {
    if (TABLE[i].code == code && TABLE[i].bits == bits) return &TABLE[i];
  }
  return NULL;
}

const dlw_dtype *dlw_dtype_of(DLDataType dtype) {
  return dtype.lanes == 1 ? find(dtype.code, dtype.bits) : NULL;
}

const dlw_dtype *dlw_dtype_named(const char *name) {
  for (size_t i = 0; i < COUNT; i++) {
    if (strcmp(TABLE[i].name, name) == 0) return &TABLE[i];
  }
  return NULL;
}

const dlw_dtype *dlw_dtype_from_format(const char *format, int64_t itemsize) {
  if (format == NULL) format = "B";
  /* wasm32 and every CPU that we build for are little-endian, so '<' is native. */
  if (*format == '@' || *format == '=' || *format == '<') format++;
  int complex = *format == 'Z';
  if (complex) format++;
  if (format[0] == '\0' || format[1] != '\0') return NULL;
  if (itemsize < 1 || itemsize > 16) return NULL;
  uint64_t bits = (uint64_t)itemsize * 8;
  switch (*format) {
    case 'F':
    case 'D':
      return complex ? NULL : find(kDLComplex, bits);
    case 'f':
    case 'd':
      return find(complex ? kDLComplex : kDLFloat, bits);
  }
  if (complex) return NULL;
  switch (*format) {
    case '?':
      return find(kDLBool, bits);
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return find(kDLInt, bits);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return find(kDLUInt, bits);
    case 'e':
      return find(kDLFloat, bits);
  }
  return NULL;
}
