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

/* --- description ------------------------------------------------------------------ */

static uint32_t element_bits(dlw_tensor *tensor) {
  return dlw_element_bits(dlw_dl(tensor)->dtype, tensor->managed.flags);
}

uint64_t dlw_nbytes(dlw_tensor *tensor) {
  return ((uint64_t)dlw_size(dlw_dl(tensor)) * element_bits(tensor) + 7) / 8;
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
    dlw_fill_row_major(to);
  }
  to->data = empty ? NULL : source->data;
  to->byte_offset = empty ? 0 : source->byte_offset;
}

/* --- memory of our own ----------------------------------------------------------- */

static void drop_memory(dlw_tensor *root) { free(dlw_dl(root)->data); }

dlw_status dlw_tensor_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                            uint64_t flags, dlw_tensor **out) {
  flags &= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  dlw_status status = dlw_check_dtype(dtype, &flags);
  if (status != DLW_OK) return status;
  uint32_t bits = dlw_element_bits(dtype, flags);
  int64_t size;
  status = dlw_check_shape(ndim, shape, bits, INTPTR_MAX - DLW_DATA_ALIGNMENT, &size);
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
  dlw_fill_row_major(dl);
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
  if (size > 0) dlw_byte_span(from, element_bits(source), size, &below, &above);
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
  dlw_status status = dlw_check(&described, flags);
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
