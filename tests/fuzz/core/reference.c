#include "reference.h"

#include <stdio.h>
#include <string.h>

#include "layout.h" /* for the names of statuses alone */

/* --- dtypes ----------------------------------------------------------------------- */

/* Facts of the table, not the core's way to look them up. */
static const struct {
  uint8_t code, bits;
  const char *name;
} DTYPES[] = {
#define ROW(code, bits, name) {code, bits, name},
    DLW_DTYPES(ROW)
#undef ROW
};

static const char *lane_name(DLDataType dtype) {
  for (size_t i = 0; i < sizeof DTYPES / sizeof DTYPES[0]; i++) {
    int same = DTYPES[i].code == dtype.code && DTYPES[i].bits == dtype.bits;
    if (same && dtype.lanes > 0) return DTYPES[i].name;
  }
  return NULL;
}

int ref_dtype_known(DLDataType dtype) { return lane_name(dtype) != NULL; }

int ref_dtype_name(DLDataType dtype, char *name, size_t room) {
  const char *lane = lane_name(dtype);
  if (lane == NULL) {
    return snprintf(name, room, "(code %d, bits %d, lanes %d)", dtype.code, dtype.bits,
                    dtype.lanes);
  }
  if (dtype.lanes == 1) return snprintf(name, room, "%s", lane);
  return snprintf(name, room, "%sx%d", lane, dtype.lanes);
}

int ref_dtype_format(DLDataType dtype, char format[3]) {
  static const struct {
    DLDataType dtype;
    char format[3];
  } ALL[] = {
      {{kDLBool, 8, 1}, "?"},      {{kDLInt, 8, 1}, "b"},
      {{kDLInt, 16, 1}, "h"},      {{kDLInt, 32, 1}, "i"},
      {{kDLInt, 64, 1}, "q"},      {{kDLUInt, 8, 1}, "B"},
      {{kDLUInt, 16, 1}, "H"},     {{kDLUInt, 32, 1}, "I"},
      {{kDLUInt, 64, 1}, "Q"},     {{kDLFloat, 16, 1}, "e"},
      {{kDLFloat, 32, 1}, "f"},    {{kDLFloat, 64, 1}, "d"},
      {{kDLComplex, 64, 1}, "Zf"}, {{kDLComplex, 128, 1}, "Zd"},
  };
  for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; i++) {
    if (memcmp(&ALL[i].dtype, &dtype, sizeof dtype) != 0) continue;
    memcpy(format, ALL[i].format, 3);
    /* NumPy's is C's long, of that width. */
    if (dtype.code <= kDLUInt && dtype.bits == 8 * sizeof(long)) {
      format[0] = dtype.code == kDLInt ? 'l' : 'L';
    }
    return 1;
  }
  return 0;
}

int ref_padded(DLDataType dtype, uint64_t flags) {
  return dtype.bits < 8 && (flags & 4) != 0;
}

uint32_t ref_element_bits(DLDataType dtype, uint64_t flags) {
  return ref_padded(dtype, flags) ? 8 : (uint32_t)dtype.bits * dtype.lanes;
}

int ref_is_host(DLDevice device) {
  int32_t type = device.device_type;
  return type == 1 || type == 3 || type == 11 || type == 13 || type == 20;
}

/* --- geometry --------------------------------------------------------------------- */

void ref_row_major(geometry *tensor) {
  int64_t stride = 1;
  for (int i = tensor->ndim - 1; i >= 0; i--) {
    tensor->strides[i] = stride;
    if (tensor->shape[i] != 0) stride *= tensor->shape[i];
  }
}

wide ref_size(const geometry *tensor, wide limit) {
  wide bits = tensor->bits, size = 1;
  for (int i = 0; i < tensor->ndim; i++) {
    if (tensor->shape[i] == 0) continue;
    bits *= tensor->shape[i];
    if (bits > INT64_MAX) return -1;
  }
  if (bits / 8 > limit) return -1;
  for (int i = 0; i < tensor->ndim; i++) size *= tensor->shape[i];
  return size;
}

wide ref_place(const geometry *tensor, int64_t n) {
  wide at = 0;
  for (int i = tensor->ndim - 1; i >= 0; i--) {
    at += (wide)(n % tensor->shape[i]) * tensor->strides[i];
    n /= tensor->shape[i];
  }
  return at * tensor->bits;
}

static wide floor_8(wide bits) { return bits >> 3; }
static wide ceil_8(wide bits) { return (bits + 7) >> 3; }

int ref_span(const geometry *tensor, wide *below, wide *above) {
  wide low = 0, high = 0;
  for (int i = 0; i < tensor->ndim; i++) {
    wide reach = (wide)(tensor->shape[i] - 1) * tensor->strides[i];
    if (reach < 0) low += reach;
    if (reach > 0) high += reach;
    /* Before they could get too large even for a wide. */
    if (low < INT64_MIN || high > INT64_MAX) return 0;
  }
  low *= tensor->bits;
  high *= tensor->bits;
  if (low < INT64_MIN || high + tensor->bits + 7 > INT64_MAX) return 0;
  *below = floor_8(low);
  *above = ceil_8(high + tensor->bits);
  return 1;
}

/* What there may be: wasm32 has 4 GiB at most, and this stands for it where pointers
 * have 32 bits; of 64 bits the upper half belongs to the kernel. */
static wide memory_end(int host) {
  if (host && sizeof(void *) == 4) return (wide)1 << 32;
  return INT64_MAX;
}

/* Elements, one by one, within memory. Few of them: else this takes too long. */
static int each_lies_within(const geometry *tensor, int64_t size, wide first,
                            wide end) {
  for (int64_t n = 0; n < size; n++) {
    wide at = ref_place(tensor, n);
    if (first + floor_8(at) < 0 || first + ceil_8(at + tensor->bits) > end) return 0;
  }
  return 1;
}

static int lies_within(const DLTensor *tensor, const geometry *lies, wide size) {
  int host = ref_is_host(tensor->device);
  wide base = host ? (wide)(uintptr_t)tensor->data : 0, end = memory_end(host);
  wide first = base + tensor->byte_offset, below, above;
  if (!ref_span(lies, &below, &above)) return 0;
  /* No array of C is larger: the difference of two pointers is signed. */
  if (host && above - below > INTPTR_MAX) return 0;
  int within = first + below >= 0 && first <= end && first + above <= end;
  if (size <= 4096 &&
      within != (each_lies_within(lies, (int64_t)size, first, end) && first <= end)) {
    fprintf(stderr, "the reference disagrees with itself\n");
    __builtin_trap();
  }
  return within;
}

static int dims_exist(const DLTensor *tensor) {
  if (tensor->ndim > 0 && tensor->shape == NULL) return 0;
  for (int i = 0; i < tensor->ndim; i++) {
    if (tensor->shape[i] < 0) return 0;
  }
  return 1;
}

static geometry geometry_of(const DLTensor *tensor, uint64_t flags) {
  geometry lies = {.ndim = tensor->ndim,
                   .bits = ref_element_bits(tensor->dtype, flags)};
  size_t bytes = (size_t)tensor->ndim * sizeof(int64_t);
  if (bytes > 0) memcpy(lies.shape, tensor->shape, bytes);
  return lies;
}

static void set_strides(geometry *lies, const DLTensor *tensor) {
  if (tensor->strides == NULL) {
    ref_row_major(lies);
  } else {
    memcpy(lies->strides, tensor->strides, (size_t)tensor->ndim * sizeof(int64_t));
  }
}

enum { FINE, LARGE, NOWHERE };

/* Of a tensor with dims: whether it is too large, or has no memory. */
static int judge_memory(const DLTensor *tensor, uint64_t flags) {
  geometry lies = geometry_of(tensor, flags);
  int host = ref_is_host(tensor->device);
  wide size = ref_size(&lies, host ? INTPTR_MAX : INT64_MAX);
  if (size < 0) return LARGE;
  if (size == 0) return FINE;
  if (tensor->data == NULL) return NOWHERE;
  set_strides(&lies, tensor);
  return lies_within(tensor, &lies, size) ? FINE : LARGE;
}

static int is_device(DLDevice device) {
  return ref_is_host(device) || device.device_type == kDLWebGPU;
}

static int is_dtype(DLDataType dtype, uint64_t flags) {
  return ref_dtype_known(dtype) && !(ref_padded(dtype, flags) && dtype.lanes != 1);
}

int ref_accepts(const DLTensor *tensor, uint64_t flags) {
  return is_device(tensor->device) && is_dtype(tensor->dtype, flags) &&
         tensor->ndim >= 0 && tensor->ndim <= 64 && dims_exist(tensor) &&
         judge_memory(tensor, flags) == FINE;
}

int ref_is_wrong(const DLTensor *tensor, uint64_t flags, int status) {
  switch (status) {
    case DLW_BAD_DEVICE:
      return !is_device(tensor->device);
    case DLW_BAD_DTYPE:
      return !is_dtype(tensor->dtype, flags);
    case DLW_BAD_NDIM:
      return tensor->ndim < 0 || tensor->ndim > 64;
    case DLW_BAD_SHAPE:
      return !dims_exist(tensor);
    case DLW_TOO_LARGE:
      return judge_memory(tensor, flags) == LARGE;
    case DLW_NULL_DATA:
      return judge_memory(tensor, flags) == NOWHERE;
  }
  return 0;
}

/* --- elements --------------------------------------------------------------------- */

static int bit_of(const uint8_t *memory, int64_t at) {
  return memory[at >> 3] >> (at & 7) & 1;
}

void ref_copy_bits(uint8_t *target, wide to, const uint8_t *memory, wide at,
                   uint32_t count) {
  int64_t into = (int64_t)to, from = (int64_t)at;
  for (uint32_t i = 0; i < count; i++, into++, from++) {
    uint8_t *byte = &target[into >> 3];
    int bit = 1 << (into & 7);
    *byte = (uint8_t)(bit_of(memory, from) ? *byte | bit : *byte & ~bit);
  }
}

int ref_same_bits(const uint8_t *a, wide at_a, const uint8_t *b, wide at_b,
                  uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (bit_of(a, (int64_t)at_a + i) != bit_of(b, (int64_t)at_b + i)) return 0;
  }
  return 1;
}

/* --- conversions ------------------------------------------------------------------ */

/* A binary float of IEEE 754, or one made like it: bits of exponent and of fraction. */
typedef struct {
  int exponent, fraction;
} format;

static format format_of(DLDataType dtype) {
  int bits = dtype.code == kDLComplex ? dtype.bits / 2 : dtype.bits;
  if (dtype.code == kDLBfloat) return (format){8, 7};
  if (bits == 16) return (format){5, 10};
  return bits == 32 ? (format){8, 23} : (format){11, 52};
}

int ref_number_bytes(DLDataType dtype) {
  return dtype.code == kDLComplex ? dtype.bits / 16 : dtype.bits / 8;
}

int64_t ref_numbers(DLDataType dtype) {
  return dtype.code == kDLComplex ? 2 * dtype.lanes : dtype.lanes;
}

ref_way ref_conversion(DLDataType from, DLDataType to) {
  static const uint8_t FLOAT_PAIRS[][4] = {
      {kDLFloat, 64, kDLFloat, 32},  {kDLFloat, 32, kDLFloat, 16},
      {kDLFloat, 32, kDLBfloat, 16}, {kDLFloat, 16, kDLFloat, 32},
      {kDLBfloat, 16, kDLFloat, 32}, {kDLComplex, 128, kDLComplex, 64},
  };
  if (from.lanes != to.lanes) return NO_WAY;
  if (from.code == to.code && from.bits == to.bits) return SAME;
  for (size_t i = 0; i < sizeof FLOAT_PAIRS / sizeof FLOAT_PAIRS[0]; i++) {
    const uint8_t *pair = FLOAT_PAIRS[i];
    if (pair[0] == from.code && pair[1] == from.bits && pair[2] == to.code &&
        pair[3] == to.bits) {
      return FLOATS;
    }
  }
  int integers = from.code == to.code && (from.code == kDLInt || from.code == kDLUInt);
  return integers && from.bits == 64 && to.bits == 32 ? INTEGERS : NO_WAY;
}

static uint64_t load(const void *source, int bytes) {
  uint64_t value = 0;
  memcpy(&value, source, (size_t)bytes); /* little-endian, as all that we build for */
  return value;
}

typedef struct {
  int negative, infinite, nan;
  uint64_t significand; /* the value is significand * 2^exponent */
  int exponent;
  uint64_t payload; /* of a NaN: its fraction, the first bit in the highest */
} number;

static number read_float(uint64_t bits, format is) {
  int bias = (1 << (is.exponent - 1)) - 1, top = (1 << is.exponent) - 1;
  uint64_t fraction = bits & (((uint64_t)1 << is.fraction) - 1);
  int exponent = (int)(bits >> is.fraction) & top;
  number value = {.negative = bits >> (is.exponent + is.fraction) & 1};
  value.infinite = exponent == top && fraction == 0;
  value.nan = exponent == top && fraction != 0;
  value.payload = fraction << (64 - is.fraction);
  value.significand = exponent > 0 ? fraction | (uint64_t)1 << is.fraction : fraction;
  value.exponent = (exponent > 0 ? exponent : 1) - bias - is.fraction;
  return value;
}

/* Rounded to the nearest, halves to the even one. A NaN keeps what there is room for;
 * it stays one. */
static uint64_t write_float(number value, format is) {
  int bias = (1 << (is.exponent - 1)) - 1, top = (1 << is.exponent) - 1;
  uint64_t sign = (uint64_t)value.negative << (is.exponent + is.fraction);
  uint64_t infinity = sign | (uint64_t)top << is.fraction;
  if (value.nan) {
    uint64_t kept = value.payload >> (64 - is.fraction);
    return infinity | (kept != 0 ? kept : 1);
  }
  if (value.infinite) return infinity;
  /* Steps of the target at this size: those of subnormal numbers at least. */
  int lowest = 1 - bias - is.fraction, length = 0;
  while (length < 64 && value.significand >> length != 0) length++;
  int step = value.exponent + length - 1 - is.fraction;
  if (step < lowest) step = lowest;
  int cut = step - value.exponent;
  wide kept = value.significand, rest = 0, half = 1;
  if (cut > 64) return sign; /* far below the half of the lowest step */
  if (cut > 0) {
    rest = kept & (((wide)1 << cut) - 1);
    half = (wide)1 << (cut - 1);
    kept >>= cut;
    if (rest > half || (rest == half && (kept & 1))) kept++;
  } else {
    kept <<= -cut;
  }
  if (kept >> (is.fraction + 1) != 0) { /* rounded up to the next power of two */
    kept >>= 1;
    step++;
  }
  if (kept >> is.fraction == 0) return sign | (uint64_t)kept; /* subnormal, or 0 */
  int exponent = step + bias + is.fraction;
  if (exponent >= top) return infinity;
  uint64_t fraction = (uint64_t)kept & (((uint64_t)1 << is.fraction) - 1);
  return sign | (uint64_t)exponent << is.fraction | fraction;
}

int ref_convert(DLDataType from, DLDataType to, void *target, const void *source) {
  uint64_t value = load(source, ref_number_bytes(from)), result = value;
  int fits = 1;
  switch (ref_conversion(from, to)) {
    case NO_WAY:
      return 0;
    case SAME:
      break;
    case FLOATS:
      result = write_float(read_float(value, format_of(from)), format_of(to));
      break;
    case INTEGERS:
      fits = from.code == kDLInt
                 ? (int64_t)value >= INT32_MIN && (int64_t)value <= INT32_MAX
                 : value <= UINT32_MAX;
  }
  memcpy(target, &result, (size_t)ref_number_bytes(to));
  return fits;
}

static int is_float(DLDataType dtype) {
  return dtype.code == kDLFloat || dtype.code == kDLBfloat || dtype.code == kDLComplex;
}

int ref_same_number(DLDataType dtype, const void *expected, const void *found) {
  int bytes = ref_number_bytes(dtype);
  uint64_t a = load(expected, bytes), b = load(found, bytes);
  if (a == b || !is_float(dtype)) return a == b;
  if (bytes == 2) return 0;
  number of_a = read_float(a, format_of(dtype)), of_b = read_float(b, format_of(dtype));
  return of_a.nan && of_b.nan && of_a.negative == of_b.negative;
}
