#include "convert.h"

#include <string.h>

/* Four elements at a time, in vectors that GCC and clang compile to SIMD. */
#define VECTOR(type, name) \
  typedef type name __attribute__((vector_size(4 * sizeof(type))))
VECTOR(float, f32);
VECTOR(double, f64);
VECTOR(uint16_t, u16);
VECTOR(uint32_t, u32);

#define CAST(vector, type) __builtin_convertvector(vector, type)
#define SELECT(mask, yes, no) (((u32)(mask) & (yes)) | (~(u32)(mask) & (no)))
#define ALL(value) ((u32){value, value, value, value})

/* --- conversions of four elements ------------------------------------------------- */

/* Halves of an even distance go to the even neighbour: half of the last kept place less
 * one, and the last kept bit, are added before the rest is cut off. */
static u32 cut(u32 bits, int places) {
  uint32_t half = (1u << (places - 1)) - 1;
  return (bits + ALL(half) + ((bits >> places) & 1)) >> places;
}

static u16 to_bfloat16(f32 from) {
  u32 bits = (u32)from, quiet = (bits >> 16) | 0x40;
  u32 magnitude = bits & 0x7fffffff;
  return CAST(SELECT(magnitude > ALL(0x7f800000), quiet, cut(bits, 16)), u16);
}

static f32 from_bfloat16(u16 from) { return (f32)(CAST(from, u32) << 16); }

/* IEEE 754: binary32 has 8 bits of exponent with bias 127 and 23 of fraction, binary16
 * has 5 with bias 15 and 10. */
static u16 to_float16(f32 from) {
  u32 bits = (u32)from, magnitude = bits & 0x7fffffff;
  u32 normal = cut(magnitude - ALL((127 - 15) << 23), 13);
  /* Below 2^-14 the steps are 2^-24, those of floats from 0.5 to 1: adding 0.5 rounds.
   */
  const f32 half = {0.5f, 0.5f, 0.5f, 0.5f};
  u32 subnormal = (u32)((f32)magnitude + half) - (u32)half;
  u32 infinite = SELECT(magnitude > ALL(0x7f800000), ALL(0x7e00), ALL(0x7c00));
  u32 result = SELECT(magnitude < ALL((127 - 14) << 23), subnormal, normal);
  result = SELECT(magnitude >= ALL((127 + 16) << 23), infinite, result);
  return CAST(result | ((bits >> 16) & 0x8000), u16);
}

static f32 from_float16(u16 from) {
  u32 half = CAST(from, u32), magnitude = (half & 0x7fff) << 13;
  /* As a float that is too small by 2^(127 - 15), subnormal ones included. */
  u32 scale = ALL((2 * 127 - 15) << 23);
  u32 bits = (u32)((f32)magnitude * (f32)scale);
  bits |= SELECT((half & 0x7fff) >= ALL(0x7c00), ALL(0x7f800000), ALL(0));
  return (f32)(bits | ((half & 0x8000) << 16));
}

/* --- conversions of many --------------------------------------------------------- */

/* Whole vectors; the rest is for dlw_convert. Each step reads before it writes, which
 * makes converting in place safe. */
#define CONVERTER(name, from_type, to_type, convert)                                   \
  static int64_t name(void *target, const void *source, int64_t count) {               \
    from_type from;                                                                    \
    for (int64_t i = 0; i < count; i += 4) {                                           \
      memcpy(&from, (const char *)source + i * (int64_t)sizeof from / 4, sizeof from); \
      to_type to = convert;                                                            \
      memcpy((char *)target + i * (int64_t)sizeof to / 4, &to, sizeof to);             \
    }                                                                                  \
    return count;                                                                      \
  }

CONVERTER(float64_float32, f64, f32, CAST(from, f32))
CONVERTER(float32_float16, f32, u16, to_float16(from))
CONVERTER(float32_bfloat16, f32, u16, to_bfloat16(from))
CONVERTER(float16_float32, u16, f32, from_float16(from))
CONVERTER(bfloat16_float32, u16, f32, from_bfloat16(from))

#define FITTING(name, wide, narrow)                                      \
  static int64_t name(void *target, const void *source, int64_t count) { \
    const wide *from = source;                                           \
    narrow *to = target;                                                 \
    for (int64_t i = 0; i < count; i++) {                                \
      wide value = from[i];                                              \
      if (value != (narrow)value) return i;                              \
      to[i] = (narrow)value;                                             \
    }                                                                    \
    return count;                                                        \
  }

FITTING(int64_int32, int64_t, int32_t)
FITTING(uint64_uint32, uint64_t, uint32_t)

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

dlw_converter dlw_converter_for(DLDataType from, DLDataType to, int64_t *lanes) {
#define PAIR(from_code, from_bits, to_code, to_bits) \
  ((from_code) << 24 | (from_bits) << 16 | (to_code) << 8 | (to_bits))
  *lanes = from.lanes;
  if (from.lanes != to.lanes) return NULL;
  switch (PAIR(from.code, from.bits, to.code, to.bits)) {
    case PAIR(kDLComplex, 128, kDLComplex, 64):
      *lanes *= 2;
      return float64_float32;
    case PAIR(kDLFloat, 64, kDLFloat, 32):
      return float64_float32;
    case PAIR(kDLFloat, 32, kDLFloat, 16):
      return float32_float16;
    case PAIR(kDLFloat, 32, kDLBfloat, 16):
      return float32_bfloat16;
    case PAIR(kDLFloat, 16, kDLFloat, 32):
      return float16_float32;
    case PAIR(kDLBfloat, 16, kDLFloat, 32):
      return bfloat16_float32;
    case PAIR(kDLInt, 64, kDLInt, 32):
      return int64_int32;
    case PAIR(kDLUInt, 64, kDLUInt, 32):
      return uint64_uint32;
  }
  return NULL;
}
