#include <string.h>

#include "convert.h"
#include "dtype.h"
#include "parts.h"

#define NUMBERS 40

/* Bits of a number: at the edges of formats, half way between neighbours, or any. */
static uint64_t take_number(input *in, int bytes) {
  uint64_t value = take_bytes(in, 8);
  switch (take_below(in, 6)) {
    case 0: /* of few bits: integers, subnormal floats */
      return value >> take_below(in, 64);
    case 1: /* few bits set at the end of what is kept */
      return value & ~(uint64_t)0 << take_below(in, 64);
    case 2: /* about what the narrower one can hold */
      return (uint64_t)take_wild(in);
    case 3: /* all bits set from there on */
      return value | ~(uint64_t)0 >> take_below(in, 64);
    case 4: /* any sign and exponent, a fraction about a power of two */
      value = (value & 0xffff) << (8 * bytes - 16);
      return value | (((uint64_t)1 << take_below(in, 48)) - take_below(in, 2));
  }
  return value;
}

/* Memory that ends with the numbers, as ASan knows; where it begins is aligned or not.
 */
static uint8_t *new_numbers(int64_t count, int bytes, uint32_t off, uint8_t **block) {
  *block = malloc((size_t)count * (size_t)bytes + off);
  return *block + off;
}

void fuzz_numbers(input *in) {
  DLDataType from = take_dtype(in), to = take_dtype(in);
  if (take_below(in, 4) > 0) { /* pairs that there are */
    static const uint8_t PAIRS[][4] = {
        {kDLFloat, 64, kDLFloat, 32},  {kDLFloat, 32, kDLFloat, 16},
        {kDLFloat, 32, kDLBfloat, 16}, {kDLFloat, 16, kDLFloat, 32},
        {kDLBfloat, 16, kDLFloat, 32}, {kDLInt, 64, kDLInt, 32},
        {kDLUInt, 64, kDLUInt, 32},    {kDLComplex, 128, kDLComplex, 64},
    };
    const uint8_t *pair = PAIRS[take_below(in, 8)];
    from.code = pair[0], from.bits = pair[1], to.code = pair[2], to.bits = pair[3];
    if (take_below(in, 8) > 0) from.lanes = to.lanes;
  }
  if (!ref_dtype_known(from)) return; /* of a tensor, which has been checked */
  int64_t lanes = -1;
  dlw_converter convert = dlw_converter_for(from, to, &lanes);
  ref_way way = ref_conversion(from, to);
  MUST((convert != NULL) == (way == FLOATS || way == INTEGERS));
  if (convert == NULL) return;
  MUST(lanes == ref_numbers(from));

  int wide_from = ref_number_bytes(from), wide_to = ref_number_bytes(to);
  uint8_t values[NUMBERS * 8], expected[NUMBERS * 8], *blocks[2] = {NULL, NULL};
  int64_t count = take_below(in, NUMBERS), fitting = count;
  for (int64_t i = 0; i < count; i++) {
    uint64_t value = take_number(in, wide_from);
    memcpy(values + i * wide_from, &value, (size_t)wide_from);
  }
  for (int64_t i = count; i-- > 0;) {
    const uint8_t *each = values + i * wide_from;
    if (!ref_convert(from, to, expected + i * wide_to, each)) fitting = i;
  }
  /* In place: narrower numbers begin where the wider ones do; wider ones end so. */
  int in_place = take_below(in, 2) == 1,
      widest = wide_from > wide_to ? wide_from : wide_to;
  uint8_t *target =
      new_numbers(count, in_place ? widest : wide_to, take_below(in, 16), &blocks[0]);
  uint8_t *source = target + (widest - wide_from) * count;
  if (!in_place) source = new_numbers(count, wide_from, take_below(in, 16), &blocks[1]);
  memcpy(source, values, (size_t)(count * wide_from));
  MUST(dlw_convert(convert, target, source, count, wide_from, wide_to) == fitting);
  for (int64_t i = 0; i < fitting; i++) {
    MUST(ref_same_number(to, expected + i * wide_to, target + i * wide_to));
  }
  free(blocks[0]);
  free(blocks[1]);
}
