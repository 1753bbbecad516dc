/* example.c: a WebAssembly module that shares tensors with JavaScript. Two functions of
 * any module's (dlpack_web.h), and as its own work a picture, a sum and a scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dlpack_web.h"

static int32_t live; /* tensors whose deleter was not called */

static void delete_tensor(DLManagedTensorVersioned *self) {
  live--;
  free(self);
}

/* One block: the struct, shape, strides, and elements from a multiple of 16 on. */
DLManagedTensorVersioned *dlpack_web_new(int32_t ndim, uint32_t bytes) {
  if (ndim < 0 || ndim > 64 || bytes > UINT32_MAX - 4096) return NULL;
  uint32_t head = (sizeof(DLManagedTensorVersioned) + (uint32_t)ndim * 16 + 15) & ~15u;
  uint32_t whole = head + ((bytes + 15) & ~15u);
  char *block = aligned_alloc(16, whole);
  if (block == NULL) return NULL;
  memset(block, 0, whole);
  DLManagedTensorVersioned *tensor = (void *)block;
  tensor->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  tensor->deleter = delete_tensor;
  tensor->dl_tensor.data = block + head;
  tensor->dl_tensor.device.device_type = kDLCPU;
  tensor->dl_tensor.ndim = ndim;
  tensor->dl_tensor.shape = (int64_t *)(tensor + 1);
  tensor->dl_tensor.strides = tensor->dl_tensor.shape + ndim;
  live++;
  return tensor;
}

void dlpack_web_delete(DLManagedTensorVersioned *tensor) {
  if (tensor->deleter != NULL) tensor->deleter(tensor);
}

DLPACK_WEB_EXPORT(live_tensors) int32_t live_tensors(void) { return live; }

/* A uint8 picture, (i, j) being i * width + j, whose rows begin at multiples of 16. */
DLPACK_WEB_EXPORT(picture)
DLManagedTensorVersioned *picture(uint32_t height, uint32_t width) {
  uint64_t pitch = ((uint64_t)width + 15) / 16 * 16;
  if (pitch * height > UINT32_MAX / 2) return NULL;
  DLManagedTensorVersioned *made = dlpack_web_new(2, (uint32_t)pitch * height);
  if (made == NULL) return NULL;
  DLTensor *tensor = &made->dl_tensor;
  tensor->dtype = (DLDataType){kDLUInt, 8, 1};
  tensor->shape[0] = height, tensor->shape[1] = width;
  tensor->strides[0] = (int64_t)pitch, tensor->strides[1] = 1;
  for (uint32_t i = 0; i < height; i++)
    for (uint32_t j = 0; j < width; j++)
      ((uint8_t *)tensor->data)[i * pitch + j] = (uint8_t)(i * width + j);
  return made;
}

/* One element, at any address, as a double. */
static double load(DLDataType type, const char *at) {
  uint64_t bits = 0;
  memcpy(&bits, at, type.bits / 8);
  int unused = 64 - type.bits;
  if (type.code == kDLInt) return (double)((int64_t)(bits << unused) >> unused);
  if (type.code == kDLUInt) return (double)bits;
  if (type.code == kDLBool) return bits != 0;
  __fp16 half;
  float single;
  double x;
  if (type.bits == 16) return memcpy(&half, at, sizeof half), half;
  if (type.bits == 32) return memcpy(&single, at, sizeof single), single;
  return memcpy(&x, at, sizeof x), x;
}

/* Adds all elements. With a factor other than 1 multiplies those of float32 in place.
 */
static double walk(const DLTensor *t, int32_t axis, char *at, float factor) {
  if (axis == t->ndim) {
    float x = (float)load(t->dtype, at) * factor;
    if (factor != 1) memcpy(at, &x, sizeof x);
    return load(t->dtype, at);
  }
  double sum = 0;
  for (int64_t i = 0; i < t->shape[axis]; i++)
    sum += walk(t, axis + 1, at + i * t->strides[axis] * t->dtype.bits / 8, factor);
  return sum;
}

/* The sum of all elements; NaN for dtypes that this module does not know. */
DLPACK_WEB_EXPORT(sum) double sum(const DLManagedTensorVersioned *tensor) {
  const DLTensor *t = &tensor->dl_tensor;
  uint8_t code = t->dtype.code, bits = t->dtype.bits;
  int whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
  int known = code == kDLInt || code == kDLUInt || (code == kDLFloat && bits > 8) ||
              (code == kDLBool && bits == 8);
  if (!whole || !known || t->dtype.lanes != 1) return NAN;
  return walk(t, 0, (char *)t->data + t->byte_offset, 1);
}

/* Multiplies all elements in place. Returns 0, doing nothing, for other dtypes than
 * float32 and read-only tensors. */
DLPACK_WEB_EXPORT(scale) int32_t scale(DLManagedTensorVersioned *tensor, float factor) {
  const DLTensor *t = &tensor->dl_tensor;
  int known = t->dtype.code == kDLFloat && t->dtype.bits == 32 && t->dtype.lanes == 1;
  if (!known || tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) return 0;
  walk(t, 0, (char *)t->data + t->byte_offset, factor);
  return 1;
}
