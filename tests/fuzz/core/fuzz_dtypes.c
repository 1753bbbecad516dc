#include <string.h>

#include "dtype.h"
#include "parts.h"

static void check_dtype(DLDataType dtype) {
  char expected[100], name[DLW_DTYPE_NAME + 8], format[3];
  memset(name, 0x5a, sizeof name);
  MUST(dlw_dtype_known(dtype) == ref_dtype_known(dtype));
  MUST(dlw_dtype_name(dtype, name) == name);
  ref_dtype_name(dtype, expected, sizeof expected);
  MUST(strcmp(name, expected) == 0);
  for (size_t i = DLW_DTYPE_NAME; i < sizeof name; i++) MUST(name[i] == 0x5a);

  const char *found = dlw_dtype_format(dtype);
  MUST((found != NULL) == ref_dtype_format(dtype, format));
  MUST(found == NULL || strcmp(found, format) == 0);
  uint32_t packed = dlw_dtype_pack(dtype);
  DLDataType again = dlw_dtype_unpack(packed);
  MUST(memcmp(&packed, &dtype, sizeof dtype) == 0);
  MUST(memcmp(&again, &dtype, sizeof dtype) == 0);
  if (!ref_dtype_known(dtype)) return;
  MUST(dlw_itemsize(dtype) == (ref_element_bits(dtype, 0) + 7) / 8);
  uint32_t alignment = dlw_alignment(dtype);
  MUST(alignment >= 1 && alignment <= 8 && (alignment & (alignment - 1)) == 0);
  MUST(dtype.bits < 8 || dlw_itemsize(dtype) % alignment == 0);
}

/* The kinds of PEP 3118's letters, and of the struct module's; 0 for others. */
static char kind_of(const char *format) {
  if (*format == '@' || *format == '=' || *format == '<') format++;
  size_t length = strlen(format);
  if (length == 2 && format[0] == 'Z') {
    return format[1] == 'f' || format[1] == 'd' ? 'c' : 0;
  }
  if (length != 1) return 0;
  if (strchr("bhilqn", *format)) return 'i';
  if (strchr("BHILQN", *format)) return 'u';
  if (strchr("efd", *format)) return 'f';
  if (strchr("FD", *format)) return 'c';
  return *format == '?' ? 'b' : 0;
}

static int64_t width_of(char kind, int64_t itemsize) {
  static const struct {
    char kind;
    uint8_t widths[5];
  } ALL[] = {{'i', {1, 2, 4, 8}},
             {'u', {1, 2, 4, 8}},
             {'f', {2, 4, 8}},
             {'c', {8, 16}},
             {'b', {1}}};
  for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; i++) {
    for (const uint8_t *width = ALL[i].widths; *width != 0; width++) {
      if (ALL[i].kind == kind && *width == itemsize) return itemsize;
    }
  }
  return 0;
}

static void check_format(const char *format, int64_t itemsize) {
  DLDataType dtype = dlw_dtype_from_format(format, itemsize);
  char kind = kind_of(format != NULL ? format : "B");
  int64_t width = width_of(kind, itemsize);
  MUST((dtype.code != kDLOpaqueHandle) == (width != 0));
  if (width == 0) return;
  static const char KINDS[] = "iuf??cb"; /* by DLPack's codes */
  MUST(KINDS[dtype.code] == kind && dtype.lanes == 1);
  MUST(dtype.bits == 8 * width && ref_dtype_known(dtype));
}

void fuzz_dtypes(input *in) {
  check_dtype(take_dtype(in));
  check_dtype(dlw_dtype_unpack((uint32_t)take_bytes(in, 4)));
  static const char LETTERS[] = "@=<>!Z?bhilqnBHILQNefdFD0{x ";
  char format[6] = {0};
  uint32_t length = take_below(in, 6);
  for (uint32_t i = 0; i < length; i++) {
    uint32_t letter = take_byte(in);
    format[i] = letter < 224 ? LETTERS[letter % (sizeof LETTERS - 1)] : (char)letter;
  }
  check_format(length == 5 ? NULL : format, take_wild(in));
  check_format(format, 1 << take_below(in, 6));
}
