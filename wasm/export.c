#include "export.h"

#include "import.h"

/* --- capsules --------------------------------------------------------------------- */

/* Deletes what no consumer has taken, which renames a capsule. */
static void destroy(PyObject *capsule) {
  PyObject *kept = dlw_put_aside();
  if (PyCapsule_IsValid(capsule, DLW_VERSIONED)) {
    DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, DLW_VERSIONED);
    if (managed->deleter != NULL) managed->deleter(managed);
  } else if (PyCapsule_IsValid(capsule, DLW_LEGACY)) {
    DLManagedTensor *managed = PyCapsule_GetPointer(capsule, DLW_LEGACY);
    if (managed->deleter != NULL) managed->deleter(managed);
  }
  dlw_put_back(kept);
}

static void delete_legacy(DLManagedTensor *self) {
  dlw_tensor_release(self->manager_ctx);
}

static PyObject *versioned_capsule(dlw_tensor *share) {
  return PyCapsule_New(&share->managed, DLW_VERSIONED, destroy);
}

static PyObject *legacy_capsule(dlw_tensor *share) {
  DLManagedTensor *legacy = dlw_payload(share);
  legacy->dl_tensor = *dlw_dl(share);
  legacy->manager_ctx = share;
  legacy->deleter = delete_legacy;
  return PyCapsule_New(legacy, DLW_LEGACY, destroy);
}

/* Whether a struct without flags says enough. If the producer did not say whether
 * memory may be written, as for another legacy capsule, it is exported as it came. */
static int fits_legacy(dlw_tensor *tensor) {
  uint64_t silent = tensor->unsettled ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return (tensor->managed.flags & ~silent) == 0;
}

PyObject *dlw_export_capsule(dlw_tensor *source, dlw_capsule_options options) {
  if (!options.versioned && !fits_legacy(source)) {
    return PyErr_Format(
        PyExc_BufferError,
        "cannot export read-only data, nor padded sub-byte elements, to a consumer of "
        "DLPack before 1.0, which has no flags; ask with max_version=(1, 0) or later, "
        "or, for read-only data, with copy=True");
  }
  dlw_tensor *share =
      dlw_tensor_share(source, options.versioned ? 0 : sizeof(DLManagedTensor));
  if (share == NULL) return PyErr_NoMemory();
  if (options.device != NULL) dlw_dl(share)->device = *options.device;
  if (options.copied) share->managed.flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  PyObject *capsule =
      options.versioned ? versioned_capsule(share) : legacy_capsule(share);
  if (capsule == NULL) dlw_release_quietly(share);
  return capsule;
}

/* --- the buffer protocol ---------------------------------------------------------- */

static int has(int flags, int wanted) { return (flags & wanted) == wanted; }

/* Byte strides as PEP 3118 has them; Py_ssize_t is narrower on wasm32. Strides of axes
 * of one element are not used, and may be too large. */
static void fill_dims(Py_ssize_t *shape, Py_ssize_t *strides, const DLTensor *tensor) {
  Py_ssize_t itemsize = (Py_ssize_t)dlw_itemsize(tensor->dtype), row_major = itemsize;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    shape[i] = (Py_ssize_t)tensor->shape[i];
    int64_t stride = 0;
    int overflows = __builtin_mul_overflow(tensor->strides[i], itemsize, &stride);
    if (overflows || (stride != (Py_ssize_t)stride)) stride = row_major;
    strides[i] = (Py_ssize_t)stride;
    if (shape[i] > 1) row_major *= shape[i];
  }
}

/* The requirement that cannot be met; NULL: none. */
static const char *refusal(dlw_tensor *tensor, const Py_buffer *view, int flags) {
  if (has(flags, PyBUF_WRITABLE) && dlw_read_only(tensor)) {
    return "this tensor is read-only; copy it first, for example with "
           "t.numpy().copy()";
  }
  char order = has(flags, PyBUF_ANY_CONTIGUOUS) ? 'A'
               : has(flags, PyBUF_F_CONTIGUOUS) ? 'F'
               : has(flags, PyBUF_C_CONTIGUOUS) ? 'C'
               : has(flags, PyBUF_STRIDES)      ? 0
                                                : 'C';
  if (order == 0 || PyBuffer_IsContiguous(view, order)) return NULL;
  return "the consumer needs contiguous memory and this tensor is strided; copy it "
         "first, for example with t.numpy().copy()";
}

int dlw_export_buffer(dlw_tensor *tensor, PyObject *exporter, Py_buffer *view,
                      int flags) {
  view->obj = NULL;
  DLTensor *dl = dlw_dl(tensor);
  const char *format = dlw_dtype_format(dl->dtype);
  if (format == NULL) {
    char name[DLW_DTYPE_NAME];
    return dlw_fail(PyExc_BufferError,
                    "the buffer protocol has no format for %s; use t.numpy()",
                    dlw_dtype_name(dl->dtype, name));
  }
  size_t axes = (size_t)dl->ndim;
  dlw_tensor *share = dlw_tensor_share(tensor, 2 * axes * sizeof(Py_ssize_t));
  if (share == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  Py_ssize_t *shape = dlw_payload(share), *strides = shape + axes;
  fill_dims(shape, strides, dl);
  *view = (Py_buffer){.buf = dl->data != NULL ? dlw_first(dl) : (char *)share,
                      .len = (Py_ssize_t)dlw_nbytes(dl, tensor->managed.flags),
                      .itemsize = (Py_ssize_t)dlw_itemsize(dl->dtype),
                      .readonly = dlw_read_only(tensor),
                      .ndim = dl->ndim,
                      .format = (char *)format,
                      .shape = shape,
                      .strides = strides,
                      .internal = share};
  const char *why_not = refusal(tensor, view, flags);
  if (why_not != NULL) {
    view->internal = NULL;
    dlw_release_quietly(share);
    return dlw_fail(PyExc_BufferError, why_not);
  }
  if (!has(flags, PyBUF_FORMAT)) view->format = NULL;
  if (!has(flags, PyBUF_STRIDES) || axes == 0) view->strides = NULL;
  if (!has(flags, PyBUF_ND)) view->ndim = 0;
  if (!has(flags, PyBUF_ND) || axes == 0) view->shape = NULL;
  view->obj = Py_NewRef(exporter);
  return 0;
}

void dlw_release_buffer(Py_buffer *view) {
  dlw_tensor *share = view->internal;
  view->internal = NULL;
  dlw_release_quietly(share);
}

/* --- functions for consumers in C ------------------------------------------------- */

static dlw_exchange_type type;

static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                    void (*set_error)(void *, const char *, const char *)) {
  dlw_tensor *tensor = NULL;
  dlw_status status = prototype->device.device_type == kDLCPU
                          ? dlw_tensor_empty(prototype->ndim, prototype->shape,
                                             prototype->dtype, 0, &tensor)
                          : DLW_BAD_DEVICE;
  *out = tensor != NULL ? &tensor->managed : NULL;
  if (status == DLW_OK) return 0;
  if (set_error == NULL) return -1;
  set_error(context, status == DLW_NO_MEMORY ? "MemoryError" : "BufferError",
            "dlpack_web allocates CPU tensors of the dtypes that it knows");
  return -1;
}

static int from_object(void *object, DLManagedTensorVersioned **out) {
  dlw_tensor *tensor = type.tensor_of(object);
  dlw_tensor *share = tensor != NULL ? dlw_share(tensor) : NULL;
  *out = share != NULL ? &share->managed : NULL;
  return share != NULL ? 0 : -1;
}

static int describe_object(void *object, DLTensor *out) {
  dlw_tensor *tensor = type.tensor_of(object);
  if (tensor == NULL) return -1;
  if (tensor->managed.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) {
    return dlw_fail(
        PyExc_BufferError,
        "a DLTensor has no flags, and could not say that these elements are "
        "padded; use __dlpack__(max_version=(1, 0))");
  }
  *out = *dlw_dl(tensor);
  return 0;
}

static int to_object(DLManagedTensorVersioned *managed, void **out) {
  *out = NULL;
  if (managed == NULL) {
    return dlw_fail(PyExc_ValueError, "the managed tensor is NULL");
  }
  dlw_tensor *tensor = dlw_import_versioned(managed);
  if (tensor == NULL) return -1;
  /* Until nothing can fail, the memory stays the caller's. */
  void (*drop)(dlw_tensor *) = tensor->drop;
  tensor->drop = NULL;
  *out = type.object_of(tensor);
  if (*out == NULL) return -1;
  tensor->drop = drop;
  return 0;
}

/* The CPU has no streams; a GPUDevice has one queue, in order of submission. */
static int current_stream(int32_t Py_UNUSED(device_type), int32_t Py_UNUSED(device_id),
                          void **out) {
  *out = NULL;
  return 0;
}

static const DLPackExchangeAPI API = {
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = from_object,
    .managed_tensor_to_py_object_no_sync = to_object,
    .dltensor_from_py_object_no_sync = describe_object,
    .current_work_stream = current_stream,
};

PyObject *dlw_exchange_api(dlw_exchange_type given) {
  type = given;
  return PyCapsule_New((void *)&API, DLW_EXCHANGE_API, NULL);
}
