#define _DEFAULT_SOURCE /* madvise */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "convert.h"
#include "pack.h"

static _Atomic int64_t live_tensors;
static void (*gpu_drop)(uint32_t gpu);

int64_t dlw_live_tensors(void) { return atomic_load(&live_tensors); }

static void count_one_less(void) {
  atomic_fetch_sub_explicit(&live_tensors, 1, memory_order_relaxed);
}

void dlw_uncount(dlw_tensor *tensor) {
  if (!tensor->uncounted) count_one_less();
  tensor->uncounted = 1;
}

void dlw_on_gpu_drop(void (*callback)(uint32_t gpu)) { gpu_drop = callback; }

/* --- life ------------------------------------------------------------------------ */

/* Axes with preallocated room before ndim is known; more need an allocation. */
#define USUAL_NDIM 6

static int64_t *inner_dims(dlw_tensor *tensor, size_t payload) {
  return (int64_t *)((char *)dlw_payload(tensor) + payload);
}

static void free_tensor(dlw_tensor *tensor) {
  if (tensor->room == 0) free(tensor->dims);
  free(tensor);
}

static void drop_root(dlw_tensor *root) {
  if (root->drop != NULL) root->drop(root);
  free_tensor(root);
}

/* Memory may depend on other memory, in a chain as long as a loop of x =
 * from_dlpack(x.__dlpack__()) ran. Each drop releases the next within the call; at this
 * depth the next one is deferred until the calls end, as stacks are small. */
#define DEEPEST 32

static void give_back(dlw_tensor *root) {
  static _Thread_local int depth;
  static _Thread_local dlw_tensor *waiting; /* the root of each is the next one */
  if (depth == DEEPEST) {
    root->root = waiting;
    waiting = root;
    return;
  }
  depth++;
  drop_root(root);
  while (depth == 1 && waiting != NULL) {
    dlw_tensor *next = waiting;
    waiting = next->root;
    drop_root(next);
  }
  depth--;
}

static void delete_managed(DLManagedTensorVersioned *self) {
  dlw_tensor *tensor = self->manager_ctx;
  dlw_tensor *root = tensor->root;
  if (!tensor->uncounted) count_one_less();
  if (tensor != root) free_tensor(tensor);
  /* The last holder must see all writes of the others. */
  if (atomic_fetch_sub_explicit(&root->holders, 1, memory_order_acq_rel) == 1) {
    give_back(root);
  }
}

/* A tensor without a root, and without axes. */
static dlw_tensor *allocate(int32_t room, size_t payload) {
  payload = (payload + 7) & ~(size_t)7;
  dlw_tensor *tensor =
      malloc(sizeof *tensor + payload + 2 * (size_t)room * sizeof(int64_t));
  if (tensor == NULL) return NULL;
  memset(tensor, 0, sizeof *tensor);
  static _Atomic uint64_t last_serial;
  tensor->serial = 1 + atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed);
  tensor->room = (uint16_t)room;
  if (room > 0) tensor->dims = inner_dims(tensor, payload);
  DLManagedTensorVersioned *managed = &tensor->managed;
  managed->version.major = DLPACK_MAJOR_VERSION;
  managed->version.minor = DLPACK_MINOR_VERSION;
  managed->manager_ctx = tensor;
  managed->deleter = delete_managed;
  managed->dl_tensor.device.device_type = kDLCPU;
  atomic_fetch_add_explicit(&live_tensors, 1, memory_order_relaxed);
  return tensor;
}

static void point_at_dims(dlw_tensor *tensor, int32_t ndim) {
  DLTensor *dl = dlw_dl(tensor);
  dl->ndim = ndim;
  if (ndim == 0) return;
  dl->shape = tensor->dims;
  dl->strides = tensor->dims + ndim;
}

static dlw_tensor *make_root(dlw_tensor *tensor) {
  if (tensor == NULL) return NULL;
  tensor->root = tensor;
  atomic_init(&tensor->holders, 1);
  return tensor;
}

dlw_tensor *dlw_tensor_reserve(size_t payload) {
  return make_root(allocate(USUAL_NDIM, payload));
}

/* Makes room for as many extents and strides. Once; 0 <= ndim <= DLW_MAX_NDIM. */
static dlw_status set_ndim(dlw_tensor *tensor, int32_t ndim) {
  if (ndim > tensor->room) {
    int64_t *dims = malloc(2 * (size_t)ndim * sizeof(int64_t));
    if (dims == NULL) return DLW_NO_MEMORY;
    tensor->dims = dims;
    tensor->room = 0;
  }
  point_at_dims(tensor, ndim);
  return DLW_OK;
}

/* A holder whose dtype, extents and strides are still to be set. */
static dlw_tensor *hold(dlw_tensor *source, int32_t ndim, size_t payload) {
  dlw_tensor *tensor = allocate(ndim, payload);
  if (tensor == NULL) return NULL;
  point_at_dims(tensor, ndim);
  DLTensor *to = dlw_dl(tensor), *from = dlw_dl(source);
  to->data = from->data;
  to->device = from->device;
  to->byte_offset = from->byte_offset;
  tensor->managed.flags = source->managed.flags & ~DLPACK_FLAG_BITMASK_IS_COPIED;
  tensor->unsettled = source->unsettled;
  tensor->root = source->root;
  atomic_fetch_add_explicit(&source->root->holders, 1, memory_order_relaxed);
  return tensor;
}

dlw_tensor *dlw_tensor_share(dlw_tensor *source, size_t payload) {
  int32_t ndim = dlw_dl(source)->ndim;
  dlw_tensor *tensor = hold(source, ndim, payload);
  if (tensor == NULL) return NULL;
  dlw_dl(tensor)->dtype = dlw_dl(source)->dtype;
  if (ndim > 0) memcpy(tensor->dims, source->dims, 2 * (size_t)ndim * sizeof(int64_t));
  return tensor;
}

void dlw_tensor_release(dlw_tensor *tensor) {
  if (tensor != NULL) delete_managed(&tensor->managed);
}

/* --- description ----------------------------------------------------------------- */

static uint32_t element_bits(dlw_tensor *tensor) {
  return dlw_element_bits(dlw_dl(tensor)->dtype, tensor->managed.flags);
}

/* The form of tensors without elements: row-major, and on the host without data. (On a
 * GPU data is a handle, which may have to be returned.) */
static void normalise_empty(DLTensor *tensor) {
  dlw_fill_row_major(tensor);
  tensor->byte_offset = 0;
  if (dlw_is_host(tensor->device)) tensor->data = NULL;
}

dlw_status dlw_tensor_describe(dlw_tensor *tensor, const DLTensor *source,
                               uint64_t flags) {
  dlw_status status = dlw_check(source, flags);
  if (status != DLW_OK) return status;
  status = set_ndim(tensor, source->ndim);
  if (status != DLW_OK) return status;
  tensor->managed.flags = dlw_lasting_flags(source->dtype, flags);
  DLTensor *to = dlw_dl(tensor);
  size_t bytes = (size_t)to->ndim * sizeof(int64_t);
  to->data = source->data;
  to->byte_offset = source->byte_offset;
  if (dlw_is_host(source->device)) { /* CONFORMANCE rule 19: others ignore the offset */
    to->data = dlw_first(source);
    to->byte_offset = 0;
  }
  to->device = source->device;
  to->dtype = source->dtype;
  if (bytes > 0) memcpy(to->shape, source->shape, bytes);
  if (dlw_size(to) == 0) {
    normalise_empty(to);
  } else if (bytes > 0 && source->strides != NULL) {
    memcpy(to->strides, source->strides, bytes);
  } else {
    dlw_fill_row_major(to);
  }
  return DLW_OK;
}

/* --- memory of our own ----------------------------------------------------------- */

#ifdef _WIN32 /* without aligned_alloc, whose memory its free could not take */
#include <malloc.h>
#define aligned_alloc(alignment, size) _aligned_malloc(size, alignment)
#define free_aligned(data) _aligned_free(data)
#else
#define free_aligned(data) free(data)
#endif

/* Linux gives large memory in pages of 2 MiB where it is asked to, as NumPy asks. There
 * are fewer page faults then when the memory is written for the first time. */
static void ask_for_huge_pages(void *data, size_t bytes) {
#ifdef __linux__
  size_t before = -(uintptr_t)data % 4096;
  if (bytes >= 1 << 22) madvise((char *)data + before, bytes - before, MADV_HUGEPAGE);
#else
  (void)data, (void)bytes;
#endif
}

static void drop_memory(dlw_tensor *root) { free_aligned(dlw_dl(root)->data); }

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
  ask_for_huge_pages(data, padded);
  // Bits after packed elements are never written: they must not expose old memory.
  if ((uint64_t)size * bits % 8 != 0) ((uint8_t *)data)[bytes - 1] = 0;
  dlw_tensor *tensor = make_root(allocate(ndim, 0));
  if (tensor == NULL) {
    free_aligned(data);
    return DLW_NO_MEMORY;
  }
  point_at_dims(tensor, ndim);
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
  if (!dlw_is_host(from->device)) return DLW_BAD_DEVICE;
  uint64_t flags = source->managed.flags;
  dlw_status status =
      dlw_tensor_empty(from->ndim, from->shape, from->dtype, flags, out);
  if (status == DLW_OK) dlw_pack(dlw_dl(*out)->data, from, element_bits(source));
  return status;
}

/* The conversion of row-major elements; both tensors have the same shape. */
static dlw_status convert_all(dlw_tensor *source, dlw_tensor *target,
                              dlw_misfit *misfit) {
  const DLTensor *from = dlw_dl(source);
  DLTensor *to = dlw_dl(target);
  if (dlw_dtype_pack(from->dtype) == dlw_dtype_pack(to->dtype)) {
    dlw_repad(to->data, element_bits(target), from->data, element_bits(source),
              dlw_size(from), from->dtype.bits);
    return DLW_OK;
  }
  int64_t lanes;
  dlw_converter convert = dlw_converter_for(from->dtype, to->dtype, &lanes);
  if (convert == NULL) return DLW_NO_CONVERSION;
  int64_t count = dlw_size(from) * lanes;
  int64_t done = dlw_convert(convert, to->data, from->data, count,
                             (int64_t)dlw_itemsize(from->dtype) / lanes,
                             (int64_t)dlw_itemsize(to->dtype) / lanes);
  if (done == count) return DLW_OK;
  misfit->position = done / lanes; /* only numbers of 64 bits can be too large */
  memcpy(&misfit->bits, (const char *)from->data + 8 * done, sizeof misfit->bits);
  return DLW_MISFIT;
}

dlw_status dlw_tensor_convert(dlw_tensor *source, DLDataType dtype, uint64_t flags,
                              dlw_tensor **out, dlw_misfit *misfit) {
  dlw_tensor *packed, *converted;
  dlw_status status = dlw_check_dtype(dtype, &flags);
  if (status == DLW_OK) status = dlw_tensor_copy(source, &packed);
  if (status != DLW_OK) return status;
  DLTensor *from = dlw_dl(packed);
  if (dlw_dtype_pack(dtype) == dlw_dtype_pack(from->dtype) &&
      dlw_element_bits(dtype, flags) == element_bits(packed)) {
    *out = packed;
    return DLW_OK;
  }
  status = dlw_tensor_empty(from->ndim, from->shape, dtype, flags, &converted);
  if (status == DLW_OK) {
    status = convert_all(packed, converted, misfit);
    if (status == DLW_OK) *out = converted;
    if (status != DLW_OK) dlw_tensor_release(converted);
  }
  dlw_tensor_release(packed);
  return status;
}

/* --- views ----------------------------------------------------------------------- */

/* Whether the view, whose element 0 is `offset` bits from that of `whole`, is within.
 */
static int is_inside(const DLTensor *whole, const DLTensor *view, int64_t offset,
                     uint32_t bits) {
  int64_t below, above, view_below, view_above;
  if (offset % 8 != 0 || dlw_size(whole) == 0) return 0;
  if (dlw_byte_span(whole, bits, &below, &above) != DLW_OK) return 0;
  if (dlw_byte_span(view, bits, &view_below, &view_above) != DLW_OK) return 0;
  return !__builtin_add_overflow(view_below, offset / 8, &view_below) &&
         !__builtin_add_overflow(view_above, offset / 8, &view_above) &&
         view_below >= below && view_above <= above;
}

dlw_status dlw_tensor_view(dlw_tensor *source, int32_t ndim, const int64_t *shape,
                           const int64_t *strides, int64_t offset, dlw_tensor **out) {
  uint32_t bits = element_bits(source);
  int host = dlw_is_host(dlw_dl(source)->device);
  int64_t size, bit_offset;
  dlw_status status =
      dlw_check_shape(ndim, shape, bits, host ? INTPTR_MAX : INT64_MAX, &size);
  if (status != DLW_OK) return status;
  if (__builtin_mul_overflow(offset, (int64_t)bits, &bit_offset)) return DLW_OUTSIDE;
  dlw_tensor *tensor = hold(source, ndim, 0);
  if (tensor == NULL) return DLW_NO_MEMORY;
  DLTensor *view = dlw_dl(tensor);
  view->dtype = dlw_dl(source)->dtype;
  size_t bytes = (size_t)ndim * sizeof(int64_t);
  if (ndim > 0) memcpy(view->shape, shape, bytes);
  if (ndim > 0) memcpy(view->strides, strides, bytes);
  if (size == 0) {
    normalise_empty(view);
  } else if (!is_inside(dlw_dl(source), view, bit_offset, bits)) {
    dlw_tensor_release(tensor);
    return DLW_OUTSIDE;
  } else if (host) {
    view->data = (char *)view->data + bit_offset / 8;
  } else {
    view->byte_offset += (uint64_t)(bit_offset / 8);
  }
  *out = tensor;
  return DLW_OK;
}

dlw_status dlw_tensor_retype(dlw_tensor *source, int32_t ndim, const int64_t *shape,
                             DLDataType dtype, dlw_tensor **out) {
  const DLTensor *from = dlw_dl(source);
  uint64_t flags = 0;
  int64_t size;
  dlw_status status = dlw_check_dtype(dtype, &flags);
  if (status != DLW_OK) return status;
  uint32_t bits = dlw_element_bits(dtype, 0);
  if (bits % 8 != 0 || element_bits(source) % 8 != 0) return DLW_BAD_DTYPE;
  status = dlw_check_shape(ndim, shape, bits, INT64_MAX, &size);
  if (status != DLW_OK) return status;
  uint64_t bytes = dlw_nbytes(from, source->managed.flags);
  if ((uint64_t)size > bytes / (bits / 8) || !dlw_is_contiguous(from))
    return DLW_OUTSIDE;
  dlw_tensor *tensor = hold(source, ndim, 0);
  if (tensor == NULL) return DLW_NO_MEMORY;
  tensor->managed.flags &= DLPACK_FLAG_BITMASK_READ_ONLY; /* padding was the source's */
  DLTensor *dl = dlw_dl(tensor);
  dl->dtype = dtype;
  if (ndim > 0) memcpy(dl->shape, shape, (size_t)ndim * sizeof(int64_t));
  dlw_fill_row_major(dl);
  if (size == 0) {
    normalise_empty(dl);
  } else if (dlw_is_host(dl->device) && !dlw_is_aligned(dl)) {
    dlw_tensor_release(tensor);
    return DLW_MISALIGNED;
  }
  *out = tensor;
  return DLW_OK;
}

dlw_status dlw_tensor_raw(dlw_tensor *source, dlw_tensor **out, int64_t *offset) {
  DLTensor *from = dlw_dl(source);
  if (!dlw_is_host(from->device)) return DLW_BAD_DEVICE;
  int64_t below = 0, above = 0;
  int empty = dlw_size(from) == 0;
  if (!empty) dlw_byte_span(from, element_bits(source), &below, &above);
  dlw_tensor *tensor = hold(source, 1, 0);
  if (tensor == NULL) return DLW_NO_MEMORY;
  tensor->managed.flags &= DLPACK_FLAG_BITMASK_READ_ONLY;
  DLTensor *raw = dlw_dl(tensor);
  raw->dtype = (DLDataType){kDLUInt, 8, 1};
  raw->shape[0] = above - below;
  raw->strides[0] = 1;
  if (!empty) raw->data = dlw_first(from) + below;
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
                               const int64_t *shape, const int64_t *strides,
                               DLDataType dtype, uint64_t flags, uint64_t byte_offset,
                               dlw_tensor **out) {
  DLTensor described = {.data = (void *)(uintptr_t)gpu,
                        .device = {kDLWebGPU, device_id},
                        .ndim = ndim,
                        .dtype = dtype,
                        .shape = (int64_t *)shape,
                        .strides = (int64_t *)strides,
                        .byte_offset = byte_offset};
  dlw_tensor *tensor = dlw_tensor_reserve(0);
  if (tensor == NULL) return DLW_NO_MEMORY;
  dlw_status status = dlw_tensor_describe(tensor, &described, flags);
  if (status != DLW_OK) {
    dlw_tensor_release(tensor);
    return status;
  }
  tensor->drop = drop_gpu;
  *out = tensor;
  return DLW_OK;
}
