#include "convert.h"

#include "vectors.h"

/* Four elements at a time. */
typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));

DLW_INLINE u32x4 all(uint32_t value) { return (u32x4){value, value, value, value}; }

/* `yes` where the mask, of a comparison, is set. */
DLW_INLINE u32x4 choose(u32x4 mask, u32x4 yes, u32x4 no) {
  return (mask & yes) | (~mask & no);
}

/* Where `bits`, with the highest bit clear, are greater: compared as signed integers,
 * which has its own instruction. */
DLW_INLINE u32x4 above(u32x4 bits, uint32_t limit) {
  return (u32x4)((i32x4)bits > (i32x4)all(limit));
}

/* --- conversions of the bits of four elements ------------------------------------- */

/* IEEE 754: binary32 has 8 bits of exponent with bias 127 and 23 of fraction, binary16
 * has 5 with bias 15 and 10; bfloat16 is the upper half of binary32. NaNs have the
 * highest exponent and a fraction that is not 0. */
#define EXPONENT32(power) ((127u + (uint32_t)(power)) << 23)
#define INFINITE32 0x7f800000u
#define INFINITE16 0x7c00u
#define INFINITE_BF16 0x7f80u
#define REBIAS ((127u - 15u) << 23)

DLW_INLINE u32x4 magnitude_of(u32x4 bits) { return (bits << 1) >> 1; }
DLW_INLINE u32x4 sign_of(u32x4 bits) { return (bits >> 31) << 15; }

/* Halves of an even distance go to the even neighbour: half of the last kept place less
 * one, and the last kept bit, are added before the rest is cut off. */
DLW_INLINE u32x4 cut(u32x4 bits, uint32_t offset, int places) {
  uint32_t half = (1u << (places - 1)) - 1;
  return (bits + all(half + offset) + ((bits >> places) & 1)) >> places;
}

/* The upper bits of a NaN's fraction; if they are 0, the lowest bit is set, since it
 * would be infinity. NumPy does the same for float16. */
DLW_INLINE u32x4 cut_nan(u32x4 magnitude, uint32_t infinite, int places) {
  u32x4 nan = (magnitude >> places) & 0x7fff;
  return nan - (u32x4)(nan == all(infinite)); /* a mask is -1 */
}

DLW_INLINE u32x4 to_bfloat16(u32x4 bits) {
  u32x4 magnitude = magnitude_of(bits), nan = cut_nan(magnitude, INFINITE_BF16, 16);
  u32x4 result = choose(above(magnitude, INFINITE32), nan, cut(magnitude, 0, 16));
  return result | sign_of(bits);
}

DLW_INLINE u32x4 from_bfloat16(u32x4 bits) { return bits << 16; }

DLW_INLINE u32x4 to_float16(u32x4 bits) {
  u32x4 magnitude = magnitude_of(bits), nan = cut_nan(magnitude, INFINITE16, 13);
  u32x4 normal = cut(magnitude, 0u - REBIAS, 13);
  /* Below 2^-14 the steps are 2^-24, those of floats from 0.5 to 1: adding 0.5 rounds.
   */
  u32x4 half = all(EXPONENT32(-1));
  u32x4 subnormal = (u32x4)((f32x4)magnitude + (f32x4)half) - half;
  u32x4 result = choose(above(magnitude, EXPONENT32(-14) - 1), normal, subnormal);
  u32x4 beyond = choose(above(magnitude, INFINITE32), nan, all(INFINITE16));
  result = choose(above(magnitude, EXPONENT32(16) - 1), beyond, result);
  return result | sign_of(bits);
}

DLW_INLINE u32x4 from_float16(u32x4 bits) {
  u32x4 magnitude = (bits << 17) >> 4, sign = (bits >> 15) << 31;
  u32x4 result = magnitude + all(REBIAS);
  u32x4 not_finite = above(magnitude, (INFINITE16 << 13) - 1);
  result += not_finite & all(REBIAS);
  /* Subnormal numbers: as fractions of 2^-14, less that. Multiplying would be shorter,
   * but processors are slow for subnormal float32 numbers. */
  u32x4 least = all(EXPONENT32(-14));
  u32x4 subnormal = (u32x4)((f32x4)(magnitude + least) - (f32x4)least);
  return choose(above(magnitude, (1u << 23) - 1), result, subnormal) | sign;
}

/* --- conversions of four elements ------------------------------------------------- */

DLW_INLINE u32x4 load_32(const char *from) {
  u32x4 bits;
  memcpy(&bits, from, sizeof bits);
  return bits;
}

DLW_INLINE u32x4 load_16(const char *from) {
  u16x4 bits;
  memcpy(&bits, from, sizeof bits);
  return __builtin_convertvector(bits, u32x4);
}

DLW_INLINE void store_32(char *to, u32x4 bits) { memcpy(to, &bits, sizeof bits); }

DLW_INLINE void store_16(char *to, u32x4 bits) {
  u16x4 lower = __builtin_convertvector(bits, u16x4);
  memcpy(to, &lower, sizeof lower);
}

DLW_INLINE void four_float64_float32(char *to, const char *from) {
  f64x4 wide;
  memcpy(&wide, from, sizeof wide);
  f32x4 narrow = __builtin_convertvector(wide, f32x4);
  memcpy(to, &narrow, sizeof narrow);
}
DLW_INLINE void four_float32_float16(char *to, const char *from) {
  store_16(to, to_float16(load_32(from)));
}
DLW_INLINE void four_float32_bfloat16(char *to, const char *from) {
  store_16(to, to_bfloat16(load_32(from)));
}
DLW_INLINE void four_float16_float32(char *to, const char *from) {
  store_32(to, from_float16(load_16(from)));
}
DLW_INLINE void four_bfloat16_float32(char *to, const char *from) {
  store_32(to, from_bfloat16(load_16(from)));
}

/* --- conversions of many ---------------------------------------------------------- */

/* Calls `four`, which the compiler inlines, for four elements at a time; dlw_convert
 * does the rest. Each step reads before it writes, which makes converting in place
 * safe. */
DLW_INLINE int64_t by_fours(char *to, int to_bytes, const char *from, int from_bytes,
                            int64_t count, void (*four)(char *, const char *)) {
  for (int64_t i = 0; i < count; i += 4, to += 4 * to_bytes, from += 4 * from_bytes) {
    four(to, from);
  }
  return count;
}

static int64_t float64_float32(void *target, const void *source, int64_t count) {
  return by_fours(target, 4, source, 8, count, four_float64_float32);
}
static int64_t float32_float16(void *target, const void *source, int64_t count) {
  return by_fours(target, 2, source, 4, count, four_float32_float16);
}
static int64_t float32_bfloat16(void *target, const void *source, int64_t count) {
  return by_fours(target, 2, source, 4, count, four_float32_bfloat16);
}
static int64_t float16_float32(void *target, const void *source, int64_t count) {
  return by_fours(target, 4, source, 2, count, four_float16_float32);
}
static int64_t bfloat16_float32(void *target, const void *source, int64_t count) {
  return by_fours(target, 4, source, 2, count, four_bfloat16_float32);
}

/* Up to the first number that is too large. */
#define NARROW(wide_type, narrow_type)                        \
  for (int64_t i = 0; i < count; i++) {                       \
    wide_type wide;                                           \
    memcpy(&wide, (const char *)source + 8 * i, sizeof wide); \
    narrow_type narrow = (narrow_type)wide;                   \
    if (narrow != wide) return i;                             \
    memcpy((char *)target + 4 * i, &narrow, sizeof narrow);   \
  }                                                           \
  return count

static int64_t int64_int32(void *target, const void *source, int64_t count) {
  NARROW(int64_t, int32_t);
}
static int64_t uint64_uint32(void *target, const void *source, int64_t count) {
  NARROW(uint64_t, uint32_t);
}
#undef NARROW

int64_t dlw_convert(dlw_converter convert, void *target, const void *source,
                    int64_t count, int64_t from, int64_t to) {
  int64_t whole = count & ~(int64_t)3, rest = count - whole;
  int64_t done = convert(target, source, whole);
  if (done < whole || rest == 0) return done;
  double last[4] = {0}; /* room for four of the widest */
  memcpy(last, (const char *)source + whole * from, (size_t)(rest * from));
  done += convert(last, last, 4);
  memcpy((char *)target + whole * to, last, (size_t)(rest * to));
  return done < count ? done : count;
}

void dlw_repad(uint8_t *target, uint32_t to, const uint8_t *source, uint32_t from,
               int64_t count, uint32_t bits) {
  uint32_t read = 0, in = 0, written = 0, out = 0; /* bits, and how many */
  for (int64_t i = 0; i < count; i++) {
    if (in < bits) {
      read |= (uint32_t)*source++ << in;
      in += 8;
    }
    written |= (read & ((1u << bits) - 1)) << out;
    read >>= from;
    in -= from;
    out += to;
    if (out < 8) continue;
    *target++ = (uint8_t)written;
    written >>= 8;
    out -= 8;
  }
  if (out > 0) *target = (uint8_t)written;
}

dlw_converter dlw_converter_for(DLDataType from, DLDataType to, int64_t *lanes) {
#define PAIR(from_code, from_bits, to_code, to_bits) \
  ((from_code) << 24 | (from_bits) << 16 | (to_code) << 8 | (to_bits))
  *lanes = from.lanes;
  if (from.lanes != to.lanes) return NULL;
  switch (PAIR(from.code, from.bits, to.code, to.bits)) {
#define CASE(from_code, from_bits, to_code, to_bits, numbers, convert) \
  case PAIR(from_code, from_bits, to_code, to_bits):                   \
    *lanes *= numbers;                                                 \
    return convert;
    DLW_CONVERSIONS(CASE)
#undef CASE
  }
  return NULL;
}
