/* Vectors that GCC and clang compile to SIMD. Independent of Python; memory need not be
 * aligned: it is accessed only by memcpy, which compiles to loads and stores. */
#ifndef DLW_VECTORS_H_
#define DLW_VECTORS_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Helpers that are compiled into each place where they are used, with the arguments
 * that are constant there: widths, above all. */
#define DLW_INLINE static inline __attribute__((always_inline))

typedef uint8_t dlw_u8x16 __attribute__((vector_size(16)));
typedef uint16_t dlw_u16x8 __attribute__((vector_size(16)));
typedef uint32_t dlw_u32x4 __attribute__((vector_size(16)));
typedef uint64_t dlw_u64x2 __attribute__((vector_size(16)));

DLW_INLINE dlw_u8x16 dlw_load(const char *from) {
  dlw_u8x16 vector;
  memcpy(&vector, from, sizeof vector);
  return vector;
}

DLW_INLINE void dlw_store(char *to, dlw_u8x16 vector) {
  memcpy(to, &vector, sizeof vector);
}

#endif
