#include "export.h"

#include "capsule.h"
#include "import.h"

/* --- capsules ----------------------------------------------------------------------
 */

static void destroy_capsule(PyObject *capsule, int versioned) {
  const char *used = versioned ? DLW_VERSIONED_USED : DLW_LEGACY_USED;
  if (PyCapsule_IsValid(capsule, used)) return;
  PyObject *kept = PyErr_GetRaisedException();
  void *pointer = PyCapsule_GetPointer(capsule, versioned ? DLW_VERSIONED : DLW_LEGACY);
  if (pointer == NULL) {
    PyErr_WriteUnraisable(NULL); /* the capsule itself is being destroyed already */
  } else if (versioned) {
    DLManagedTensorVersioned *managed = pointer;
    if (managed->deleter != NULL) managed->deleter(managed);
  } else {
    DLManagedTensor *managed = pointer;
    if (managed->deleter != NULL) managed->deleter(managed);
  }
  if (kept != NULL) PyErr_SetRaisedException(kept);
}
static void destroy_versioned(PyObject *capsule) { destroy_capsule(capsule, 1); }
static void destroy_legacy(PyObject *capsule) { destroy_capsule(capsule, 0); }

static void delete_legacy(DLManagedTensor *self) {
  dlw_tensor_release(self->manager_ctx);
}

PyObject *dlw_export(dlw_tensor *source, int versioned, int copied) {
  /* Of the flags READ_ONLY and IS_SUBBYTE_TYPE_PADDED none can be told. */
  if (!versioned && source->managed.flags != 0) {
    return dlw_fail("legacy", "()");
  }
  dlw_tensor *share = dlw_tensor_share(source, versioned ? 0 : sizeof(DLManagedTensor));
  if (share == NULL) return PyErr_NoMemory();
  if (copied) share->managed.flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  PyObject *capsule;
  if (versioned) {
    capsule = PyCapsule_New(&share->managed, DLW_VERSIONED, destroy_versioned);
  } else {
    DLManagedTensor *legacy = dlw_payload(share);
    legacy->dl_tensor = *dlw_dl(share);
    legacy->manager_ctx = share;
    legacy->deleter = delete_legacy;
    capsule = PyCapsule_New(legacy, DLW_LEGACY, destroy_legacy);
  }
  if (capsule == NULL) dlw_tensor_release(share);
  return capsule;
}

/* --- our exchange functions
 * ------------------------------------------------------------------------ */

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
  *out = type.object_of(tensor);
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

PyObject *dlw_exchange_api(dlw_exchange_type given) {
  type = given;
  return PyCapsule_New((void *)&API, DLW_EXCHANGE_API, NULL);
}
