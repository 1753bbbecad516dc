/* Vectors that GCC and clang compile to SIMD. Independent of Python; memory need not be
 * aligned: it is accessed only by memcpy, which compiles to loads and stores. */
#ifndef DLW_VECTORS_H_
#define DLW_VECTORS_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

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

/* The lower bytes of 16 numbers. */
DLW_INLINE dlw_u8x16 dlw_low_bytes(dlw_u16x8 a, dlw_u16x8 b) {
#ifdef __wasm_simd128__ /* V8 needs six instructions for the shuffle below */
  return (dlw_u8x16)wasm_u8x16_narrow_i16x8((v128_t)(a & 255), (v128_t)(b & 255));
#else
  return __builtin_shufflevector((dlw_u8x16)a, (dlw_u8x16)b, 0, 2, 4, 6, 8, 10, 12, 14,
                                 16, 18, 20, 22, 24, 26, 28, 30);
#endif
}

#endif
