#include <string.h>

#include "layout.h"
#include "parts.h"
#include "tensor.h"

/* 1 to 16 on nearly every call: anything else is refused at once. */
static int32_t take_device_type(input *in) {
  static const int32_t TYPES[] = {1, 1, 1, 1, 15, 15, 3, 11, 13, 2};
  uint32_t how = take_below(in, 12);
  return how < 10 ? TYPES[how] : (int32_t)take_wild(in);
}

/* Addresses at the edges of memory, and what are none. */
static uintptr_t take_address(input *in) {
  static const uintptr_t EDGES[] = {0,          1,           4096,
                                    INTPTR_MAX, UINTPTR_MAX, UINTPTR_MAX / 2 + 1};
  uint32_t how = take_below(in, 16);
  if (how < 6) return EDGES[how] + (uintptr_t)take_below(in, 16) - (how > 2 ? 8 : 0);
  return (uintptr_t)take_bytes(in, 8);
}

static void take_dims(input *in, int32_t ndim, int64_t *dims) {
  for (int i = 0; i < ndim && i < 64; i++) dims[i] = take_wild(in);
}

/* What a described tensor must be: the same, with strides, and empty ones all alike. */
static void check_described(dlw_tensor *tensor, const DLTensor *source,
                            uint64_t flags) {
  const DLTensor *made = dlw_dl(tensor);
  geometry lies = {.ndim = source->ndim,
                   .bits = ref_element_bits(source->dtype, flags)};
  size_t bytes = (size_t)source->ndim * sizeof(int64_t);
  if (bytes > 0) memcpy(lies.shape, source->shape, bytes);
  wide size = ref_size(&lies, INT64_MAX);
  int keeps = size > 0 && bytes > 0 && source->strides != NULL;
  if (keeps) memcpy(lies.strides, source->strides, bytes);
  if (!keeps) ref_row_major(&lies);
  MUST(made->ndim == source->ndim);
  MUST(dlw_size(made) == size);
  MUST(bytes == 0 || memcmp(made->shape, lies.shape, bytes) == 0);
  MUST(bytes == 0 || memcmp(made->strides, lies.strides, bytes) == 0);
  MUST(memcmp(&made->dtype, &source->dtype, sizeof made->dtype) == 0);
  MUST(memcmp(&made->device, &source->device, sizeof made->device) == 0);
  if (ref_is_host(source->device)) { /* only where element 0 is matters */
    uintptr_t first = size == 0 ? 0 : (uintptr_t)dlw_first(source);
    MUST((uintptr_t)dlw_first(made) == first);
  } else {
    MUST(made->data == source->data);
    MUST(made->byte_offset == (size == 0 ? 0 : source->byte_offset));
  }
  uint64_t lasting = ref_padded(source->dtype, flags) ? 5 : 1;
  MUST(tensor->managed.flags == (flags & lasting));
  MUST(dlw_nbytes(made, tensor->managed.flags) ==
       (uint64_t)((size * lies.bits + 7) / 8));
  MUST(tensor->managed.version.major == 1 && tensor->managed.manager_ctx != NULL);
  if (size > 0) { /* by the definition: each step to the next in row-major order */
    geometry packed = lies;
    ref_row_major(&packed);
    int same = 1;
    for (int i = 0; i < lies.ndim; i++) {
      if (lies.shape[i] > 1 && lies.strides[i] != packed.strides[i]) same = 0;
    }
    MUST(dlw_is_contiguous(made) == same);
  }
}

void fuzz_check(input *in) {
  int64_t shape[64], strides[64];
  uint32_t how = take_byte(in);
  DLTensor source = {
      .device = {take_device_type(in), (int32_t)take_below(in, 3)},
      .dtype = take_dtype(in),
      .ndim = how & 1 ? (int32_t)take_below(in, 9) : (int32_t)take_wild(in),
      .shape = how & 2 && how & 4 ? NULL : shape,
      .strides = how & 8 ? NULL : strides,
      .data = (void *)take_address(in),
      .byte_offset = how & 16 ? 0 : (uint64_t)take_wild(in)};
  uint64_t flags = how & 32 ? take_bytes(in, 8) : take_below(in, 8);
  take_dims(in, source.ndim, shape);
  take_dims(in, source.ndim, strides);

  dlw_status status = dlw_check(&source, flags);
  MUST((status == DLW_OK) == ref_accepts(&source, flags));
  MUST(status == DLW_OK || ref_is_wrong(&source, flags, (int)status));

  int64_t before = dlw_live_tensors();
  dlw_tensor *tensor = dlw_tensor_reserve(take_below(in, 100));
  MUST(tensor != NULL && dlw_live_tensors() == before + 1);
  MUST(dlw_tensor_describe(tensor, &source, flags) == status);
  if (status == DLW_OK) check_described(tensor, &source, flags);
  dlw_tensor_release(tensor);
  MUST(dlw_live_tensors() == before);
}
