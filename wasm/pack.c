#include "pack.h"

#include <string.h>

#include "tensor.h"

/* One axis of the walk: extents and strides of what is left after merging. */
typedef struct {
  int64_t extent;
  int64_t stride; /* bytes; bits where elements are no whole bytes */
} axis;

/* Drops axes of extent 1 and merges an axis with the one inside of it when together
 * they step evenly. Returns how many are left; the last is the innermost. */
static int merge_axes(const DLTensor *source, int64_t step, axis *axes) {
  int count = 0;
  for (int32_t i = 0; i < source->ndim; i++) {
    if (source->shape[i] == 1) continue;
    axis next = {source->shape[i], source->strides[i] * step};
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

/* Copies one innermost run of elements; the next one goes right behind it. */
static void copy_bytes(char *to, const char *from, axis run, int64_t itemsize) {
  if (run.stride == itemsize) {
    memcpy(to, from, (size_t)(run.extent * itemsize));
    return;
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
    case 16:
      COPY_RUN(uint64_t[2]);
    default: /* vectors */
      for (int64_t i = 0; i < run.extent; i++, from += run.stride, to += itemsize) {
        memcpy(to, from, (size_t)itemsize);
      }
  }
}

/* The same with positions in bits, counted from the lowest bit of a byte on; `target`
 * is 0 where nothing was written yet. */
static void copy_bits(uint8_t *target, int64_t to, const uint8_t *source, int64_t from,
                      axis run, int64_t bits) {
  for (int64_t i = 0; i < run.extent; i++, from += run.stride) {
    for (int64_t k = from; k < from + bits; k++, to++) {
      int bit = source[k >> 3] >> (k & 7) & 1;
      target[to >> 3] = (uint8_t)(target[to >> 3] | bit << (to & 7));
    }
  }
}

void dlw_pack(void *target, const DLTensor *source, uint32_t element_bits) {
  int64_t size = dlw_size(source);
  if (size == 0) return;
  int packed = element_bits % 8 != 0;
  if (packed) memset(target, 0, (size_t)((size * element_bits + 7) / 8));
  int64_t step = packed ? element_bits : element_bits / 8;
  axis axes[DLW_MAX_NDIM];
  int count = merge_axes(source, step, axes);
  axis run = count > 0 ? axes[count - 1] : (axis){1, step};
  int outer = count > 0 ? count - 1 : 0;
  int64_t index[DLW_MAX_NDIM] = {0};
  char *first = dlw_first(source);
  int64_t from = 0, to = 0;
  for (;; to += run.extent * step) {
    if (packed) {
      copy_bits(target, to, (uint8_t *)first, from, run, step);
    } else {
      copy_bytes((char *)target + to, first + from, run, step);
    }
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
