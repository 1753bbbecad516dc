#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "pack.h"

static _Atomic int64_t live_tensors;
static void (*gpu_drop)(uint32_t gpu);

int64_t dlw_live_tensors(void) { return atomic_load(&live_tensors); }
void dlw_on_gpu_drop(void (*callback)(uint32_t gpu)) { gpu_drop = callback; }

/* --- life ------------------------------------------------------------------------ */

static void delete_managed(DLManagedTensorVersioned *self) {
  dlw_tensor *tensor = self->manager_ctx;
  dlw_tensor *root = tensor->root;
  atomic_fetch_sub_explicit(&live_tensors, 1, memory_order_relaxed);
  if (tensor != root) free(tensor);
  /* The last holder must see all that the others did with the memory. */
  if (atomic_fetch_sub_explicit(&root->holders, 1, memory_order_acq_rel) != 1) return;
  if (root->drop != NULL) root->drop(root);
  free(root);
}

static dlw_tensor *allocate(int32_t ndim, size_t payload) {
  size_t at = offsetof(dlw_tensor, dims) + 2 * (size_t)ndim * sizeof(int64_t);
  dlw_tensor *tensor = malloc(at + payload);
  if (tensor == NULL) return NULL;
  memset(tensor, 0, offsetof(dlw_tensor, dims));
  tensor->payload = at;
  DLManagedTensorVersioned *managed = &tensor->managed;
  managed->version.major = DLPACK_MAJOR_VERSION;
  managed->version.minor = DLPACK_MINOR_VERSION;
  managed->manager_ctx = tensor;
  managed->deleter = delete_managed;
  managed->dl_tensor.device.device_type = kDLCPU;
  managed->dl_tensor.ndim = ndim;
  if (ndim > 0) {
    managed->dl_tensor.shape = tensor->dims;
    managed->dl_tensor.strides = tensor->dims + ndim;
  }
  atomic_fetch_add_explicit(&live_tensors, 1, memory_order_relaxed);
  return tensor;
}

dlw_tensor *dlw_tensor_new(int32_t ndim, size_t payload) {
  dlw_tensor *tensor = allocate(ndim, payload);
  if (tensor == NULL) return NULL;
  tensor->root = tensor;
  atomic_init(&tensor->holders, 1);
  return tensor;
}

/* A holder whose ndim, dtype, extents and strides are still to be set. */
static dlw_tensor *hold(dlw_tensor *source, int32_t ndim, size_t payload) {
  dlw_tensor *tensor = allocate(ndim, payload);
  if (tensor == NULL) return NULL;
  DLTensor *to = dlw_dl(tensor), *from = dlw_dl(source);
  to->data = from->data;
  to->device = from->device;
  to->byte_offset = from->byte_offset;
  tensor->managed.flags = source->managed.flags & ~DLPACK_FLAG_BITMASK_IS_COPIED;
  tensor->root = source->root;
  atomic_fetch_add_explicit(&source->root->holders, 1, memory_order_relaxed);
  return tensor;
}

dlw_tensor *dlw_tensor_share(dlw_tensor *source, size_t payload) {
  int32_t ndim = dlw_dl(source)->ndim;
  dlw_tensor *tensor = hold(source, ndim, payload);
  if (tensor == NULL) return NULL;
  dlw_dl(tensor)->dtype = dlw_dl(source)->dtype;
  memcpy(tensor->dims, source->dims, 2 * (size_t)ndim * sizeof(int64_t));
  return tensor;
}

void dlw_tensor_release(dlw_tensor *tensor) {
  if (tensor != NULL) delete_managed(&tensor->managed);
}

/* --- sizes ----------------------------------------------------------------------- */

int64_t dlw_size(const DLTensor *tensor) {
  int64_t size = 1;
  for (int32_t i = 0; i < tensor->ndim; i++) size *= tensor->shape[i];
  return size;
}

static uint32_t element_bits(dlw_tensor *tensor) {
  return dlw_element_bits(dlw_dl(tensor)->dtype, tensor->managed.flags);
}

uint64_t dlw_nbytes(dlw_tensor *tensor) {
  return ((uint64_t)dlw_size(dlw_dl(tensor)) * element_bits(tensor) + 7) / 8;
}

int dlw_is_contiguous(const DLTensor *tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    int64_t extent = tensor->shape[i];
    if (extent == 0) return 1;
    if (extent != 1 && tensor->strides[i] != expected) return 0;
    expected *= extent;
  }
  return 1;
}

/* Row-major strides; an extent of 0 counts as 1, so that no stride becomes 0. The shape
 * has been checked, so the products cannot overflow. */
static void fill_row_major(DLTensor *tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    tensor->strides[i] = stride;
    if (tensor->shape[i] > 1) stride *= tensor->shape[i];
  }
}

/* Whether a * b overflows. Small factors go without the 128-bit product that
 * __builtin_mul_overflow makes of it on wasm: this runs for every tensor. */
static int multiply(int64_t a, int64_t b, int64_t *product) {
  if (a == (int32_t)a && b == (int32_t)b) {
    *product = a * b;
    return 0;
  }
  return __builtin_mul_overflow(a, b, product);
}

/* Elements of `shape` by way of `*size`, at most `limit` bytes; that is judged without
 * the zero extents, so that fill_row_major stays in range as well. */
static dlw_status check_shape(int32_t ndim, const int64_t *shape, uint32_t element_bits,
                              int64_t limit, int64_t *size) {
  if (ndim < 0 || ndim > DLW_MAX_NDIM) return DLW_BAD_NDIM;
  if (ndim > 0 && shape == NULL) return DLW_BAD_SHAPE;
  int64_t elements = 1, bits;
  int empty = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (shape[i] < 0) return DLW_BAD_SHAPE;
    if (shape[i] == 0) empty = 1;
    if (shape[i] > 1 && multiply(elements, shape[i], &elements)) return DLW_TOO_LARGE;
  }
  if (multiply(elements, element_bits, &bits) || bits / 8 > limit) return DLW_TOO_LARGE;
  *size = empty ? 0 : elements;
  return DLW_OK;
}

/* Lowest and highest element, in elements from element 0. */
static dlw_status span(const DLTensor *tensor, int64_t *low, int64_t *high) {
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

/* One past the last address that memory can have. */
static uint64_t memory_end(void) {
#ifdef __wasm__
  return (uint64_t)__builtin_wasm_memory_size(0) << 16; /* pages of 64 KiB */
#else
  return INTPTR_MAX; /* the upper half belongs to the kernel */
#endif
}

/* Where the first element starts and the last one ends, in bytes from element 0. */
static dlw_status byte_span(const DLTensor *tensor, uint32_t element_bits, int64_t size,
                            int64_t *below, int64_t *above) {
  int64_t low = 0, high = size - 1;
  if (tensor->strides != NULL) {
    dlw_status status = span(tensor, &low, &high);
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

static dlw_status check_span(const DLTensor *tensor, uint32_t element_bits,
                             int64_t size) {
  int64_t below, above;
  dlw_status status = byte_span(tensor, element_bits, size, &below, &above);
  if (status != DLW_OK) return status;
  /* Memory starts at data; on a GPU data is a handle, and memory starts at 0. */
  int cpu = tensor->device.device_type == kDLCPU;
  uint64_t base = cpu ? (uint64_t)(uintptr_t)tensor->data : 0, first, end;
  uint64_t limit = cpu ? memory_end() : INT64_MAX;
  if (__builtin_add_overflow(base, tensor->byte_offset, &first)) return DLW_TOO_LARGE;
  if (first > limit || 0 - (uint64_t)below > first) return DLW_TOO_LARGE;
  if (__builtin_add_overflow(first, (uint64_t)above, &end) || end > limit) {
    return DLW_TOO_LARGE;
  }
  return DLW_OK;
}

/* Padding puts one element into a byte; of vectors DLPack does not say what it means.
 */
static dlw_status check_dtype(DLDataType dtype, uint64_t *flags) {
  if (!dlw_dtype_known(dtype)) return DLW_BAD_DTYPE;
  *flags = dlw_lasting_flags(dtype, *flags);
  int padded = (*flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  return padded && dtype.lanes != 1 ? DLW_BAD_DTYPE : DLW_OK;
}

dlw_status dlw_tensor_check(const DLTensor *tensor, uint64_t flags) {
  int32_t type = tensor->device.device_type;
  if (type != kDLCPU && type != kDLWebGPU) return DLW_BAD_DEVICE;
  dlw_status status = check_dtype(tensor->dtype, &flags);
  if (status != DLW_OK) return status;
  uint32_t bits = dlw_element_bits(tensor->dtype, flags);
  int64_t size;
  status = check_shape(tensor->ndim, tensor->shape, bits,
                       type == kDLCPU ? INTPTR_MAX : INT64_MAX, &size);
  if (status != DLW_OK || size == 0) return status;
  if (tensor->data == NULL) return DLW_NULL_DATA;
  status = check_span(tensor, bits, size);
  if (status != DLW_OK) return status;
  if (type == kDLCPU && (uintptr_t)dlw_first(tensor) % dlw_alignment(tensor->dtype)) {
    return DLW_MISALIGNED;
  }
  return DLW_OK;
}

void dlw_tensor_describe(dlw_tensor *tensor, const DLTensor *source, uint64_t flags) {
  tensor->managed.flags = dlw_lasting_flags(source->dtype, flags);
  DLTensor *to = dlw_dl(tensor);
  size_t bytes = (size_t)to->ndim * sizeof(int64_t);
  to->device = source->device;
  to->dtype = source->dtype;
  if (to->ndim > 0) memcpy(to->shape, source->shape, bytes);
  int empty = dlw_size(to) == 0;
  if (to->ndim > 0 && source->strides != NULL && !empty) {
    memcpy(to->strides, source->strides, bytes);
  } else {
    fill_row_major(to);
  }
  to->data = empty ? NULL : source->data;
  to->byte_offset = empty ? 0 : source->byte_offset;
}

/* --- memory of our own ----------------------------------------------------------- */

static void drop_memory(dlw_tensor *root) { free(dlw_dl(root)->data); }

dlw_status dlw_tensor_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                            uint64_t flags, dlw_tensor **out) {
  flags &= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  dlw_status status = check_dtype(dtype, &flags);
  if (status != DLW_OK) return status;
  uint32_t bits = dlw_element_bits(dtype, flags);
  int64_t size;
  status = check_shape(ndim, shape, bits, INTPTR_MAX - DLW_DATA_ALIGNMENT, &size);
  if (status != DLW_OK) return status;
  size_t bytes = (size_t)(((uint64_t)size * bits + 7) / 8);
  size_t padded = (bytes + DLW_DATA_ALIGNMENT - 1) & ~(size_t)(DLW_DATA_ALIGNMENT - 1);
  void *data = bytes > 0 ? aligned_alloc(DLW_DATA_ALIGNMENT, padded) : NULL;
  if (bytes > 0 && data == NULL) return DLW_NO_MEMORY;
  dlw_tensor *tensor = dlw_tensor_new(ndim, 0);
  if (tensor == NULL) {
    free(data);
    return DLW_NO_MEMORY;
  }
  tensor->managed.flags = flags;
  DLTensor *dl = dlw_dl(tensor);
  dl->dtype = dtype;
  dl->data = data;
  if (ndim > 0) memcpy(dl->shape, shape, (size_t)ndim * sizeof(int64_t));
  fill_row_major(dl);
  tensor->drop = drop_memory;
  *out = tensor;
  return DLW_OK;
}

dlw_status dlw_tensor_copy(dlw_tensor *source, dlw_tensor **out) {
  DLTensor *from = dlw_dl(source);
  if (from->device.device_type != kDLCPU) return DLW_BAD_DEVICE;
  uint64_t flags = source->managed.flags;
  dlw_status status =
      dlw_tensor_empty(from->ndim, from->shape, from->dtype, flags, out);
  if (status == DLW_OK) dlw_pack(dlw_dl(*out)->data, from, element_bits(source));
  return status;
}

dlw_status dlw_tensor_raw(dlw_tensor *source, dlw_tensor **out, int64_t *offset) {
  DLTensor *from = dlw_dl(source);
  if (from->device.device_type != kDLCPU) return DLW_BAD_DEVICE;
  int64_t size = dlw_size(from), below = 0, above = 0;
  if (size > 0) byte_span(from, element_bits(source), size, &below, &above);
  dlw_tensor *tensor = hold(source, 1, 0);
  if (tensor == NULL) return DLW_NO_MEMORY;
  tensor->managed.flags &= DLPACK_FLAG_BITMASK_READ_ONLY;
  DLTensor *raw = dlw_dl(tensor);
  raw->dtype = (DLDataType){kDLUInt, 8, 1};
  raw->shape[0] = above - below;
  raw->strides[0] = 1;
  if (size > 0) raw->data = dlw_first(from) + below;
  raw->byte_offset = 0;
  *offset = -below;
  *out = tensor;
  return DLW_OK;
}

/* --- opaque handles -------------------------------------------------------------- */

static void drop_gpu(dlw_tensor *root) {
  if (gpu_drop != NULL) gpu_drop((uint32_t)(uintptr_t)dlw_dl(root)->data);
}

dlw_status dlw_tensor_wrap_gpu(uint32_t gpu, int32_t device_id, int32_t ndim,
                               const int64_t *shape, DLDataType dtype, uint64_t flags,
                               uint64_t byte_offset, dlw_tensor **out) {
  DLTensor described = {.data = (void *)(uintptr_t)gpu,
                        .device = {kDLWebGPU, device_id},
                        .ndim = ndim,
                        .dtype = dtype,
                        .shape = (int64_t *)shape,
                        .byte_offset = byte_offset};
  dlw_status status = dlw_tensor_check(&described, flags);
  if (status != DLW_OK) return status;
  dlw_tensor *tensor = dlw_tensor_new(ndim, 0);
  if (tensor == NULL) return DLW_NO_MEMORY;
  dlw_tensor_describe(tensor, &described, flags);
  /* An empty tensor may still have a buffer: its handle has to come back. */
  dlw_dl(tensor)->data = described.data;
  tensor->drop = drop_gpu;
  *out = tensor;
  return DLW_OK;
}
