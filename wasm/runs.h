/* Copies a line of elements, from any stride to any stride. Independent of Python;
 * addresses need no alignment. */
#ifndef DLW_RUNS_H_
#define DLW_RUNS_H_

#include "vectors.h"

/* Like memcpy, which on wasm is a call into another module that short copies avoid. */
void dlw_copy_bytes(char *to, const char *from, size_t bytes);

/* Copies `count` elements of `width` bytes. The steps are bytes from an element to the
 * next, of either sign; with 0 in the source one element is repeated. Target and source
 * do not overlap. */
void dlw_copy_run(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
                  size_t count, size_t width);

#endif
