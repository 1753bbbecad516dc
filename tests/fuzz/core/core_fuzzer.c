/* The C core without Python, against a slow reference: `make fuzz` builds this twice,
 * for 64 bits and for 32 as on wasm32, with libFuzzer, ASan and UBSan. The first byte
 * of an input chooses the part. */
#include <stddef.h>

#include "parts.h"

/* --- allocations that fail: the linker's --wrap sends the core's here ------------- */

static uint32_t until_failure;
static int failed;

void fail_allocation(uint32_t n) {
  until_failure = n;
  failed = 0;
}

int allocation_failed(void) { return failed; }

static int fails_now(void) {
  if (until_failure == 0 || --until_failure > 0) return 0;
  failed = 1;
  return 1;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return fails_now() ? NULL : __real_malloc(bytes); }

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes) {
  return fails_now() ? NULL : __real_realloc(old, bytes);
}

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return fails_now() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* --- the parts -------------------------------------------------------------------- */

DLDataType take_dtype(input *in) {
  static const uint8_t KNOWN[][2] = {
      {kDLFloat, 32},        {kDLFloat, 64},        {kDLFloat, 16},
      {kDLBfloat, 16},       {kDLComplex, 32},      {kDLComplex, 64},
      {kDLComplex, 128},     {kDLInt, 64},          {kDLUInt, 64},
      {kDLInt, 32},          {kDLUInt, 32},         {kDLInt, 16},
      {kDLUInt, 16},         {kDLInt, 8},           {kDLUInt, 8},
      {kDLBool, 8},          {kDLFloat8_e4m3fn, 8}, {kDLFloat6_e2m3fn, 6},
      {kDLFloat6_e3m2fn, 6}, {kDLInt, 4},           {kDLUInt, 4},
      {kDLFloat4_e2m1fn, 4}, {kDLInt, 2},           {kDLUInt, 2},
      {kDLUInt, 1},          {kDLInt, 1},           {kDLBcomplex, 32},
  };
  static const uint16_t LANES[] = {1, 1, 1, 1, 1, 2, 3, 4, 5, 7, 16, 65535};
  uint32_t how = take_byte(in);
  if (how >= 240) { /* anything */
    return (DLDataType){(uint8_t)take_byte(in), (uint8_t)take_byte(in),
                        (uint16_t)take_bytes(in, 2)};
  }
  size_t count = sizeof KNOWN / sizeof KNOWN[0];
  uint16_t lanes = how < 120 ? 1 : LANES[take_below(in, 12)];
  return (DLDataType){KNOWN[how % count][0], KNOWN[how % count][1], lanes};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* In this order in run.py. */
  static void (*const PARTS[])(input *) = {fuzz_tensors, fuzz_check,   fuzz_handles,
                                           fuzz_dtypes,  fuzz_numbers, fuzz_runs};
  input in = {data, data + size};
  PARTS[take_below(&in, 6)](&in);
  return 0;
}
