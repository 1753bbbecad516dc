/* Transposes two axes. Independent of Python; addresses need no alignment. */
#ifndef DLW_TILES_H_
#define DLW_TILES_H_

#include "runs.h"

/* One axis of the copy; the strides, in the source and in the target, are bytes. */
typedef struct {
  int64_t extent;
  int64_t from, to;
} dlw_axis;

/* The largest elements for which tiles are faster: half a line of the cache. */
#define DLW_TILES_WIDTH 32

/* Copies elements of `width` bytes along two axes, of which `column` is contiguous in
 * the target, and `row` has the shorter steps in the source; it is fastest if `row` is
 * contiguous there. Target and source do not overlap. */
void dlw_copy_tiles(char *to, const char *from, dlw_axis row, dlw_axis column,
                    size_t width);

/* Copies bytes along two axes: fast where the channels of a pixel are adjacent in the
 * source, or in the target, and those of a plane in the other. Target and source do not
 * overlap. */
void dlw_copy_pixels(char *to, const char *from, dlw_axis channel, dlw_axis pixel);

#endif
