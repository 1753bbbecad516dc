#include "pack.h"

#include <string.h>

#include "tensor.h"

/* One axis of the walk: extents and strides of what is left after merging. */
typedef struct {
  int64_t extent;
  int64_t stride; /* bytes */
} axis;

/* Drops axes of extent 1 and merges an axis with the one inside of it when together
 * they step evenly. Returns how many are left; the last is the innermost. */
static int merge_axes(const DLTensor *source, int64_t itemsize, axis *axes) {
  int count = 0;
  for (int32_t i = 0; i < source->ndim; i++) {
    axis next = {source->shape[i], source->strides[i] * itemsize};
    if (next.extent == 1) continue;
    if (count > 0 && axes[count - 1].stride == next.extent * next.stride) {
      axes[count - 1].extent *= next.extent;
      axes[count - 1].stride = next.stride;
    } else {
      axes[count++] = next;
    }
  }
  return count;
}

#define COPY_RUN(type)                                           \
  for (int64_t i = 0; i < run.extent; i++, from += run.stride) { \
    memcpy(to, from, sizeof(type));                              \
    to += sizeof(type);                                          \
  }                                                              \
  break

/* Copies one innermost run; returns where the next one goes. */
static char *copy_run(char *to, const char *from, axis run, int64_t itemsize) {
  if (run.stride == itemsize) {
    size_t bytes = (size_t)(run.extent * itemsize);
    memcpy(to, from, bytes);
    return to + bytes;
  }
  switch (itemsize) {
    case 1:
      COPY_RUN(uint8_t);
    case 2:
      COPY_RUN(uint16_t);
    case 4:
      COPY_RUN(uint32_t);
    case 8:
      COPY_RUN(uint64_t);
    default: /* complex128, the widest dtype of the table */
      COPY_RUN(uint64_t[2]);
  }
  return to;
}

void dlw_pack(void *target, const DLTensor *source) {
  if (dlw_size(source) == 0) return;
  int64_t itemsize = dlw_itemsize(source->dtype);
  axis axes[DLW_MAX_NDIM];
  int count = merge_axes(source, itemsize, axes);
  axis run = count > 0 ? axes[count - 1] : (axis){1, itemsize};
  int outer = count > 0 ? count - 1 : 0;
  int64_t index[DLW_MAX_NDIM] = {0};
  const char *from = dlw_first(source);
  char *to = target;
  for (;;) {
    to = copy_run(to, from, run, itemsize);
    int i = outer - 1;
    for (; i >= 0; i--) {
      from += axes[i].stride;
      if (++index[i] < axes[i].extent) break;
      from -= axes[i].stride * axes[i].extent;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}
