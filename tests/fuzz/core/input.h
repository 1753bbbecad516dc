/* What libFuzzer gives, read as the decisions of a test; and how a test fails. */
#ifndef INPUT_H_
#define INPUT_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const uint8_t *at, *end;
} input;

/* Once the bytes are used up all decisions are 0: short inputs mean something. */
static inline uint32_t take_byte(input *in) { return in->at < in->end ? *in->at++ : 0; }

static inline uint64_t take_bytes(input *in, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; i++) value |= (uint64_t)take_byte(in) << (8 * i);
  return value;
}

/* 0 to n - 1, n <= 256 */
static inline uint32_t take_below(input *in, uint32_t n) { return take_byte(in) % n; }

/* Mostly small, sometimes at an edge of what some type holds, or anything. */
static inline int64_t take_wild(input *in) {
  uint32_t how = take_byte(in);
  if (how < 192) return (int64_t)(how % 24) - 8;
  if (how < 224) { /* about a power of two, of either sign */
    uint64_t power = (uint64_t)1 << take_below(in, 64);
    uint64_t value = power + take_below(in, 5) - 2;
    return (int64_t)(how & 1 ? 0 - value : value);
  }
  return (int64_t)take_bytes(in, how < 240 ? 4 : 8);
}

/* Fails the run, after which libFuzzer keeps the input. */
#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: must be: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                 \
    }                                                                          \
  } while (0)

#endif
