/* __dlpack_c_exchange_api__: what consumers in C call instead of __dlpack__
 * (DLPack 1.3). */
#include "core.h"

static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                    void (*set_error)(void *, const char *, const char *)) {
  dlw_tensor *tensor = NULL;
  dlw_status status = prototype->device.device_type == kDLCPU
                          ? dlw_tensor_empty(prototype->ndim, prototype->shape,
                                             prototype->dtype, &tensor)
                          : DLW_BAD_DEVICE;
  *out = tensor != NULL ? &tensor->managed : NULL;
  if (status == DLW_OK) return 0;
  set_error(context, status == DLW_NO_MEMORY ? "MemoryError" : "BufferError",
            "dlpack_web allocates CPU tensors of the dtypes that it knows");
  return -1;
}

static int from_object(void *object, DLManagedTensorVersioned **out) {
  dlw_tensor *tensor = dlw_tensor_of(object);
  dlw_tensor *share = tensor != NULL ? dlw_share(tensor) : NULL;
  *out = share != NULL ? &share->managed : NULL;
  return share != NULL ? 0 : -1;
}

static int describe_object(void *object, DLTensor *out) {
  dlw_tensor *tensor = dlw_tensor_of(object);
  if (tensor == NULL) return -1;
  *out = *dlw_dl(tensor);
  return 0;
}

static int to_object(DLManagedTensorVersioned *managed, void **out) {
  *out = NULL;
  if (managed == NULL) {
    PyErr_SetString(PyExc_ValueError, "the managed tensor is NULL");
    return -1;
  }
  dlw_tensor *tensor = dlw_import_versioned(managed);
  if (tensor == NULL) return -1;
  tensor->managed.flags &= ~DLPACK_FLAG_BITMASK_IS_COPIED;
  /* Until nothing can fail any more, the memory stays the caller's. */
  void (*drop)(dlw_tensor *) = tensor->drop;
  tensor->drop = NULL;
  *out = dlw_tensor_object(tensor);
  if (*out == NULL) return -1;
  tensor->drop = drop;
  return 0;
}

/* The CPU has no streams; a GPUDevice has one queue, in order of submission. */
static int current_stream(int32_t device_type, int32_t device_id, void **out) {
  (void)device_type, (void)device_id;
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

PyObject *dlw_exchange_api(void) {
  return PyCapsule_New((void *)&API, "dlpack_exchange_api", NULL);
}
