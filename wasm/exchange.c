/* __dlpack_c_exchange_api__: what consumers in C call instead of __dlpack__
 * (DLPack 1.3). Ours, and how we call another library's. */
#include "core.h"

#define CAPSULE_NAME "dlpack_exchange_api"

/* --- ours ------------------------------------------------------------------------ */

static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                    void (*set_error)(void *, const char *, const char *)) {
  dlw_tensor *tensor = NULL;
  dlw_status status = prototype->device.device_type == kDLCPU
                          ? dlw_tensor_empty(prototype->ndim, prototype->shape,
                                             prototype->dtype, 0, &tensor)
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
    dlw_fail("no_managed", "()");
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
  return PyCapsule_New((void *)&API, CAPSULE_NAME, NULL);
}

/* --- others' --------------------------------------------------------------------- */

/* The functions of our major version, behind those of newer ones; NULL: none. The chain
 * is as long as DLPack has major versions, so a longer one is broken. */
static const DLPackExchangeAPI *our_major(const DLPackExchangeAPIHeader *header) {
  for (int i = 0; i < 16 && header != NULL; i++, header = header->prev_api) {
    if (header->version.major == DLPACK_MAJOR_VERSION) {
      return (const DLPackExchangeAPI *)header;
    }
  }
  return NULL;
}

/* Asks the type, as DLPack says: instances may have an attribute of that name, too. */
static const DLPackExchangeAPI *api_of(PyTypeObject *type) {
  /* The last static type that has none, as ndarray is. Those types cannot get one
   * later, and they never die, so that the address stays theirs. */
  static PyTypeObject *without;
  if (type == without) return NULL;
  PyObject *capsule = PyObject_GetAttr((PyObject *)type, dlw_core->str_exchange);
  if (capsule == NULL) {
    PyErr_Clear();
    if (!(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE)) without = type;
    return NULL;
  }
  const DLPackExchangeAPI *api = NULL; /* lives as long as the process does */
  if (PyCapsule_IsValid(capsule, CAPSULE_NAME)) {
    api = our_major(PyCapsule_GetPointer(capsule, CAPSULE_NAME));
  }
  Py_DECREF(capsule);
  return api != NULL && api->managed_tensor_from_py_object_no_sync != NULL ? api : NULL;
}

int dlw_import_exchange(PyObject *obj, dlw_tensor **out) {
  const DLPackExchangeAPI *api = api_of(Py_TYPE(obj));
  if (api == NULL) return 0;
  *out = NULL;
  DLManagedTensorVersioned *managed = NULL;
  int failed = api->managed_tensor_from_py_object_no_sync(obj, &managed);
  if (failed || managed == NULL) {
    if (!PyErr_Occurred()) dlw_fail("exchange", "(O)", Py_TYPE(obj));
    return 1;
  }
  *out = dlw_import_versioned(managed);
  if (*out == NULL) {
    if (managed->deleter != NULL) DLW_KEEP_EXCEPTION(managed->deleter(managed));
    return 1;
  }
  (*out)->managed.flags &= ~DLPACK_FLAG_BITMASK_IS_COPIED;
  /* PyTorch's functions hand out a conjugated view as if it were not; its __dlpack__
   * refuses. */
  if (managed->dl_tensor.dtype.code != kDLComplex) return 1;
  dlw_tensor_release(*out);
  return 0;
}
