/* Converts elements between dtypes, where WebGPU lacks the wider one or cannot read the
 * narrower one. Independent of Python; memory need not be aligned. */
#ifndef DLW_CONVERT_H_
#define DLW_CONVERT_H_

#include "dlpack.h"

/* Converts `count` elements, a multiple of four, and returns how many: fewer if one
 * does not fit. In place, the target may share the start of a wider source, or the end
 * of a narrower one. */
typedef int64_t (*dlw_converter)(void *target, const void *source, int64_t count);

/* How elements of `from` become elements of `to`, or NULL if not supported: float64 ->
 * float32, complex128 -> complex64 rounded to nearest, ties to even float32 -> float16,
 * bfloat16 likewise; what is too large: infinity float16, bfloat16 -> float32 exact
 * int64 -> int32, uint64 -> uint32 stops at a value that does not fit and vectors of
 * these, lane by lane. A NaN stays one, with its sign: of its payload the 16-bit floats
 * keep the upper bits, or 1 where those are 0, as NumPy's own conversion does; float64
 * -> float32 is the processor's conversion, which makes it quiet. `*lanes` is how many
 * numbers an element has. */
dlw_converter dlw_converter_for(DLDataType from, DLDataType to, int64_t *lanes);

/* Copies `count` elements of `bits` bits, of less than a byte, between packed and
 * padded memory: the next one is `from` bits on in the source and `to` bits in the
 * target, each of which is `bits` or 8. Other bits of the target's bytes become 0. */
void dlw_repad(uint8_t *target, uint32_t to, const uint8_t *source, uint32_t from,
               int64_t count, uint32_t bits);

/* Converts any number of elements, of `from` and `to` bytes; returns how many precede
 * one that does not fit. */
int64_t dlw_convert(dlw_converter convert, void *target, const void *source,
                    int64_t count, int64_t from, int64_t to);

#endif
