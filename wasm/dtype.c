#include "dtype.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* By DLDataTypeCode: the name of one lane, and the widths: see DLW_DTYPE_CODES. */
static const struct {
  char name[20];
  uint8_t numbered;
  uint16_t widths;
} CODES[] = {
#define ROW(code, name, numbered, widths) [code] = {name, numbered, widths},
    DLW_DTYPE_CODES(ROW)
#undef ROW
};

int dlw_dtype_known(DLDataType dtype) {
  static const uint8_t WIDTHS[] = DLW_WIDTHS;
  if (dtype.code >= sizeof CODES / sizeof CODES[0] || dtype.lanes == 0) return 0;
  for (size_t i = 0; i < sizeof WIDTHS; i++) {
    if (WIDTHS[i] == dtype.bits) return CODES[dtype.code].widths >> i & 1;
  }
  return 0;
}

const char *dlw_dtype_name(DLDataType dtype, char name[DLW_DTYPE_NAME]) {
  char bits[4] = "", lanes[8] = "";
  if (!dlw_dtype_known(dtype)) {
    snprintf(name, DLW_DTYPE_NAME, "(code %u, bits %u, lanes %u)", dtype.code,
             dtype.bits, dtype.lanes);
    return name;
  }
  if (CODES[dtype.code].numbered) snprintf(bits, sizeof bits, "%u", dtype.bits);
  if (dtype.lanes > 1) snprintf(lanes, sizeof lanes, "x%u", dtype.lanes);
  snprintf(name, DLW_DTYPE_NAME, "%s%s%s", CODES[dtype.code].name, bits, lanes);
  return name;
}

/* np.int32 or np.int64 is C's long, whichever is as wide; int and long long of the same
 * width are other classes in NumPy, so isinstance(array[0], np.int64) fails. */
#if LONG_MAX == INT32_MAX
#define INT32 "l"
#define UINT32 "L"
#define INT64 "q"
#define UINT64 "Q"
#else
#define INT32 "i"
#define UINT32 "I"
#define INT64 "l"
#define UINT64 "L"
#endif

const char *dlw_dtype_format(DLDataType dtype) {
  /* Characters, not pointers: on wasm each pointer in a table costs code to relocate.
   */
  static const struct {
    uint8_t code, bits;
    char format[3];
  } FORMATS[] = {
      {kDLFloat, 32, "f"},    {kDLFloat, 64, "d"},     {kDLFloat, 16, "e"},
      {kDLBool, 8, "?"},      {kDLInt, 8, "b"},        {kDLInt, 16, "h"},
      {kDLInt, 32, INT32},    {kDLInt, 64, INT64},     {kDLUInt, 8, "B"},
      {kDLUInt, 16, "H"},     {kDLUInt, 32, UINT32},   {kDLUInt, 64, UINT64},
      {kDLComplex, 64, "Zf"}, {kDLComplex, 128, "Zd"},
  };
  if (dtype.lanes != 1) return NULL;
  for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
    if (FORMATS[i].code == dtype.code && FORMATS[i].bits == dtype.bits) {
      return FORMATS[i].format;
    }
  }
  return NULL;
}

static uint8_t code_of(const char *format) {
  static const struct {
    uint8_t code;
    char letters[7];
  } KINDS[] = {{kDLBool, "?"},
               {kDLInt, "bhilqn"},
               {kDLUInt, "BHILQN"},
               {kDLFloat, "efd"},
               {kDLComplex, "FD"}};
  int complex = *format == 'Z';
  if (complex) format++;
  if (format[0] == '\0' || format[1] != '\0') return kDLOpaqueHandle;
  if (complex) {
    return *format == 'f' || *format == 'd' ? kDLComplex : kDLOpaqueHandle;
  }
  for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
    if (strchr(KINDS[i].letters, *format) != NULL) return KINDS[i].code;
  }
  return kDLOpaqueHandle;
}

DLDataType dlw_dtype_from_format(const char *format, int64_t itemsize) {
  if (format == NULL) format = "B";
  /* wasm32 and every CPU that we build for are little-endian, so '<' is native. */
  if (*format == '@' || *format == '=' || *format == '<') format++;
  DLDataType dtype = {code_of(format), 0, 1};
  if (itemsize >= 1 && itemsize <= 16) dtype.bits = (uint8_t)(itemsize * 8);
  if (dlw_dtype_format(dtype) == NULL) dtype.code = kDLOpaqueHandle;
  return dtype;
}
