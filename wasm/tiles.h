/* Two axes that change places. Nothing here knows Python, and no address need be a
 * multiple of anything. */
#ifndef DLW_TILES_H_
#define DLW_TILES_H_

#include "runs.h"

/* One axis of what is copied; the strides, in the source and in the target, are bytes.
 */
typedef struct {
  int64_t extent;
  int64_t from, to;
} dlw_axis;

/* The largest elements that tiles are worth it for: half a line of the cache. */
#define DLW_TILES_WIDTH 32

/* Copies elements of `width` bytes along two axes, of which `column` is contiguous in
 * the target, and `row` has the shorter steps in the source; it is fastest where it is
 * contiguous there. Target and source do not overlap. */
void dlw_copy_tiles(char *to, const char *from, dlw_axis row, dlw_axis column,
                    size_t width);

#endif
