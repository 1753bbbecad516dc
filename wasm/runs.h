/* Elements in a line, from any stride to any stride. Nothing here knows Python, and no
 * address need be a multiple of anything. */
#ifndef DLW_RUNS_H_
#define DLW_RUNS_H_

#include "vectors.h"

/* What memcpy does: on wasm that is a call into another module, which short copies go
 * without. */
void dlw_copy_bytes(char *to, const char *from, size_t bytes);

/* Copies `count` elements of `width` bytes. The steps are bytes from an element to the
 * next, of either sign; with 0 in the source one element is repeated. Target and source
 * do not overlap. */
void dlw_copy_run(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
                  size_t count, size_t width);

#endif
