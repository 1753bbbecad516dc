#include "layout.h"

int64_t dlw_size(const DLTensor *tensor) {
  int64_t size = 1;
  for (int32_t i = 0; i < tensor->ndim; i++) size *= tensor->shape[i];
  return size;
}

uint64_t dlw_nbytes(const DLTensor *tensor, uint64_t flags) {
  return ((uint64_t)dlw_size(tensor) * dlw_element_bits(tensor->dtype, flags) + 7) / 8;
}

int dlw_is_contiguous(const DLTensor *tensor) {
  int64_t expected = 1;
  int contiguous = 1;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    int64_t extent = tensor->shape[i];
    if (extent == 0) return 1;
    if (extent != 1 && tensor->strides[i] != expected) contiguous = 0;
    expected *= extent;
  }
  return contiguous;
}

void dlw_fill_row_major(DLTensor *tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    tensor->strides[i] = stride;
    if (tensor->shape[i] > 1) stride *= tensor->shape[i];
  }
}

/* Whether a * b overflows. Small factors avoid the 128-bit product of
 * __builtin_mul_overflow on wasm: this runs for every tensor. */
static int multiply(int64_t a, int64_t b, int64_t *product) {
  if (a == (int32_t)a && b == (int32_t)b) {
    *product = a * b;
    return 0;
  }
  return __builtin_mul_overflow(a, b, product);
}

dlw_status dlw_check_shape(int32_t ndim, const int64_t *shape, uint32_t element_bits,
                           int64_t limit, int64_t *size) {
  if (ndim < 0 || ndim > DLW_MAX_NDIM) return DLW_BAD_NDIM;
  if (ndim > 0 && shape == NULL) return DLW_BAD_SHAPE;
  int64_t elements = 1, bits;
  int empty = 0, overflow = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (shape[i] < 0) return DLW_BAD_SHAPE;
    if (shape[i] == 0) empty = 1;
    if (shape[i] > 1) overflow |= multiply(elements, shape[i], &elements);
  }
  if (overflow || multiply(elements, element_bits, &bits) || bits / 8 > limit) {
    return DLW_TOO_LARGE;
  }
  *size = empty ? 0 : elements;
  return DLW_OK;
}

/* Padding puts one element into a byte; DLPack does not define it for vectors. */
dlw_status dlw_check_dtype(DLDataType dtype, uint64_t *flags) {
  if (!dlw_dtype_known(dtype)) return DLW_BAD_DTYPE;
  *flags = dlw_lasting_flags(dtype, *flags);
  int padded = (*flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  return padded && dtype.lanes != 1 ? DLW_BAD_DTYPE : DLW_OK;
}

/* Lowest and highest element, in elements from element 0. */
static dlw_status element_span(const DLTensor *tensor, int64_t *low, int64_t *high) {
  *low = *high = 0;
  for (int32_t i = 0; i < tensor->ndim; i++) {
    int64_t reach;
    if (multiply(tensor->shape[i] - 1, tensor->strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? *low : *high, reach,
                               reach < 0 ? low : high)) {
      return DLW_TOO_LARGE;
    }
  }
  return DLW_OK;
}

dlw_status dlw_byte_span(const DLTensor *tensor, uint32_t element_bits, int64_t *below,
                         int64_t *above) {
  int64_t low = 0, high = 0;
  if (tensor->strides == NULL) {
    high = dlw_size(tensor) - 1;
  } else {
    dlw_status status = element_span(tensor, &low, &high);
    if (status != DLW_OK) return status;
  }
  if (multiply(low, element_bits, below) || multiply(high, element_bits, above) ||
      __builtin_add_overflow(*above, element_bits + 7, above)) {
    return DLW_TOO_LARGE;
  }
  *below >>= 3;
  *above >>= 3;
  return DLW_OK;
}

/* One past the last possible address. */
static uint64_t memory_end(void) {
#ifdef __wasm__
  return (uint64_t)__builtin_wasm_memory_size(0) << 16; /* pages of 64 KiB */
#elif UINTPTR_MAX == UINT32_MAX
  return (uint64_t)UINT32_MAX + 1; /* programs of 32 bits may have all of it */
#else
  return INTPTR_MAX; /* the upper half belongs to the kernel */
#endif
}

static dlw_status check_span(const DLTensor *tensor, uint32_t element_bits) {
  int64_t below, above;
  dlw_status status = dlw_byte_span(tensor, element_bits, &below, &above);
  if (status != DLW_OK) return status;
  /* Memory starts at data; on a GPU data is a handle, and memory starts at 0. */
  int host = dlw_is_host(tensor->device);
  /* As for every C array: larger pointer differences are undefined. */
  if (host && (uint64_t)above - (uint64_t)below > INTPTR_MAX) return DLW_TOO_LARGE;
  uint64_t base = host ? (uint64_t)(uintptr_t)tensor->data : 0, first, end;
  uint64_t limit = host ? memory_end() : INT64_MAX;
  if (__builtin_add_overflow(base, tensor->byte_offset, &first)) return DLW_TOO_LARGE;
  if (first > limit || 0 - (uint64_t)below > first) return DLW_TOO_LARGE;
  if (__builtin_add_overflow(first, (uint64_t)above, &end) || end > limit) {
    return DLW_TOO_LARGE;
  }
  return DLW_OK;
}

dlw_status dlw_check(const DLTensor *tensor, uint64_t flags) {
  int host = dlw_is_host(tensor->device);
  if (!host && tensor->device.device_type != kDLWebGPU) return DLW_BAD_DEVICE;
  dlw_status status = dlw_check_dtype(tensor->dtype, &flags);
  if (status != DLW_OK) return status;
  uint32_t bits = dlw_element_bits(tensor->dtype, flags);
  int64_t size;
  status = dlw_check_shape(tensor->ndim, tensor->shape, bits,
                           host ? INTPTR_MAX : INT64_MAX, &size);
  if (status != DLW_OK || size == 0) return status;
  if (tensor->data == NULL) return DLW_NULL_DATA;
  return check_span(tensor, bits);
}
