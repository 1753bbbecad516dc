/* DLPack capsules of both flavours and Py_buffers: in and out. */
#include "core.h"

typedef struct {
  const char *name, *used;
} flavour;

static const flavour LEGACY = {"dltensor", "used_dltensor"};
static const flavour VERSIONED = {"dltensor_versioned", "used_dltensor_versioned"};

/* --- errors ---------------------------------------------------------------------- */

static void *raise(PyObject *error) {
  if (error != NULL) PyErr_SetRaisedException(error);
  return NULL;
}

void *dlw_fail(const char *key, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *arguments = Py_VaBuildValue(format, values);
  va_end(values);
  if (arguments == NULL) return NULL;
  return raise(PyObject_CallFunction(dlw_core->fail, "sN", key, arguments));
}

void dlw_raise(dlw_status status, const DLTensor *tensor) {
  if (status == DLW_OK) return;
  if (status == DLW_NO_MEMORY) {
    PyErr_NoMemory();
    return;
  }
  DLDataType dtype = tensor->dtype;
  uintptr_t address = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
  raise(PyObject_CallFunction(dlw_core->fail, "i(iiiiiiK)", (int)status, tensor->ndim,
                              dtype.code, dtype.bits, dtype.lanes,
                              tensor->device.device_type, tensor->device.device_id,
                              (unsigned long long)address));
}

dlw_tensor *dlw_explain(PyObject *obj, int borrowing) {
  PyObject *raised = PyErr_GetRaisedException();
  PyObject *better = PyObject_CallFunctionObjArgs(dlw_core->explain, obj, raised,
                                                  borrowing ? Py_True : Py_False, NULL);
  if (better == NULL) { /* never hide the first error behind ours */
    PyErr_Clear();
    return raise(raised);
  }
  Py_DECREF(raised);
  if (!dlw_is_tensor(better)) return raise(better);
  dlw_tensor *tensor = dlw_tensor_of(better);
  dlw_tensor *share = tensor != NULL ? dlw_share(tensor) : NULL;
  Py_DECREF(better);
  return share;
}

/* --- fresh memory, one more hold ------------------------------------------------- */

dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags) {
  DLTensor wanted = {.ndim = ndim, .dtype = dtype, .device = {kDLCPU, 0}};
  dlw_tensor *tensor = NULL;
  dlw_raise(dlw_tensor_empty(ndim, shape, dtype, flags, &tensor), &wanted);
  return tensor;
}

dlw_tensor *dlw_copy(dlw_tensor *source) {
  dlw_tensor *copy = NULL;
  dlw_raise(dlw_tensor_copy(source, &copy), dlw_dl(source));
  return copy;
}

dlw_tensor *dlw_share(dlw_tensor *source) {
  dlw_tensor *share = dlw_tensor_share(source, 0);
  if (share == NULL) PyErr_NoMemory();
  return share;
}

/* --- import: buffer protocol ----------------------------------------------------- */

static void drop_buffer(dlw_tensor *root) {
  if (!Py_IsInitialized()) return; /* nothing left to give it back to */
  PyGILState_STATE gil = PyGILState_Ensure();
  DLW_KEEP_EXCEPTION(PyBuffer_Release(dlw_payload(root)));
  PyGILState_Release(gil);
}

/* Byte strides to element strides. Those of axes with one element, or of arrays without
 * any, carry no information and are not judged. */
static int element_strides(const Py_buffer *view, int64_t *strides) {
  for (int i = 0; i < view->ndim && view->strides != NULL; i++) {
    strides[i] = view->strides[i] / view->itemsize;
    if (view->strides[i] % view->itemsize == 0) continue;
    if (view->shape[i] <= 1 || view->len == 0) continue;
    dlw_fail("stride", "(inn)", i, view->strides[i], view->itemsize);
    return -1;
  }
  return 0;
}

static dlw_tensor *describe_buffer(const Py_buffer *view) {
  DLDataType dtype = dlw_dtype_from_format(view->format, view->itemsize);
  if (dtype.code == kDLOpaqueHandle) {
    return dlw_fail("format", "(sn)", view->format ? view->format : "B",
                    view->itemsize);
  }
  int64_t shape[DLW_MAX_NDIM], strides[DLW_MAX_NDIM];
  DLTensor described = {.data = view->buf,
                        .device = {kDLCPU, 0},
                        .ndim = view->ndim,
                        .dtype = dtype,
                        .shape = shape,
                        /* ctypes gives none, whatever it is asked for: row-major. */
                        .strides = view->strides != NULL ? strides : NULL};
  if (view->ndim > DLW_MAX_NDIM) {
    dlw_raise(DLW_BAD_NDIM, &described);
    return NULL;
  }
  if (element_strides(view, strides) < 0) return NULL;
  for (int i = 0; i < view->ndim; i++) shape[i] = view->shape[i];
  dlw_status status = dlw_tensor_check(&described, 0);
  if (status != DLW_OK) {
    dlw_raise(status, &described);
    return NULL;
  }
  dlw_tensor *tensor = dlw_tensor_new(view->ndim, sizeof(Py_buffer));
  if (tensor == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  dlw_tensor_describe(tensor, &described,
                      view->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
  return tensor;
}

dlw_tensor *dlw_import_buffer(PyObject *obj) {
  Py_buffer view;
  if (PyObject_GetBuffer(obj, &view, PyBUF_RECORDS_RO) < 0) return NULL;
  dlw_tensor *tensor = describe_buffer(&view);
  if (tensor == NULL) {
    DLW_KEEP_EXCEPTION(PyBuffer_Release(&view));
    return NULL;
  }
  /* Exporters let a Py_buffer move as long as nothing in it points into itself. */
  *(Py_buffer *)dlw_payload(tensor) = view;
  tensor->drop = drop_buffer;
  return tensor;
}

/* --- import: capsules ------------------------------------------------------------ */

typedef struct { /* whichever of the two was imported */
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy;
} imported;

static void drop_imported(dlw_tensor *root) {
  imported *from = dlw_payload(root);
  if (from->versioned != NULL) {
    if (from->versioned->deleter != NULL) from->versioned->deleter(from->versioned);
  } else if (from->legacy->deleter != NULL) {
    from->legacy->deleter(from->legacy);
  }
}

PyObject *dlw_owner(dlw_tensor *tensor) {
  dlw_tensor *root = tensor->root;
  if (root->drop != drop_buffer) return PyBool_FromLong(root->drop == drop_imported);
  return Py_NewRef(((Py_buffer *)dlw_payload(root))->obj);
}

/* Both describe: the tensor they return has no drop yet, so the memory stays whose it
 * was. What is imported is for take_over to say. */
static dlw_tensor *describe_imported(const DLTensor *described, uint64_t flags) {
  dlw_status status = dlw_tensor_check(described, flags);
  if (status != DLW_OK) {
    dlw_raise(status, described);
    return NULL;
  }
  dlw_tensor *tensor = dlw_tensor_new(described->ndim, sizeof(imported));
  if (tensor == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  dlw_tensor_describe(tensor, described, flags);
  /* Whether this export copied is for dlw_import_dlpack; it is no property of memory.
   */
  tensor->managed.flags |= flags & DLPACK_FLAG_BITMASK_IS_COPIED;
  return tensor;
}

static dlw_tensor *describe_versioned(const DLManagedTensorVersioned *managed) {
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    /* Nothing behind the flags may be read. */
    return dlw_fail("major", "(IIO)", managed->version.major, managed->version.minor,
                    dlw_core->max_version);
  }
  return describe_imported(&managed->dl_tensor, managed->flags);
}

static void take_over(dlw_tensor *tensor, DLManagedTensorVersioned *versioned,
                      DLManagedTensor *legacy) {
  *(imported *)dlw_payload(tensor) = (imported){versioned, legacy};
  tensor->drop = drop_imported;
}

dlw_tensor *dlw_import_versioned(DLManagedTensorVersioned *managed) {
  dlw_tensor *tensor = describe_versioned(managed);
  if (tensor != NULL) take_over(tensor, managed, NULL);
  return tensor;
}

static dlw_tensor *import_managed(PyObject *capsule, const flavour *kind) {
  void *pointer = PyCapsule_GetPointer(capsule, kind->name);
  if (pointer == NULL) return NULL;
  int versioned = kind == &VERSIONED;
  /* A legacy struct cannot say whether memory may be written, so that is not assumed.
   */
  dlw_tensor *tensor = versioned
                           ? describe_versioned(pointer)
                           : describe_imported(&((DLManagedTensor *)pointer)->dl_tensor,
                                               DLPACK_FLAG_BITMASK_READ_ONLY);
  if (tensor == NULL) return NULL;
  if (PyCapsule_SetName(capsule, kind->used) < 0) {
    dlw_tensor_release(tensor); /* the capsule still owns the memory */
    return NULL;
  }
  take_over(tensor, versioned ? pointer : NULL, versioned ? NULL : pointer);
  return tensor;
}

dlw_tensor *dlw_import_capsule(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, VERSIONED.name)) {
    return import_managed(capsule, &VERSIONED);
  }
  if (PyCapsule_IsValid(capsule, LEGACY.name)) return import_managed(capsule, &LEGACY);
  if (PyCapsule_IsValid(capsule, VERSIONED.used) ||
      PyCapsule_IsValid(capsule, LEGACY.used)) {
    return dlw_fail("consumed", "()");
  }
  return dlw_fail("no_capsule", "(O)", capsule);
}

/* --- import: __dlpack__ ---------------------------------------------------------- */

static PyObject *call_dlpack(PyObject *obj, const DLDevice *device, int copy) {
  PyObject *args[4] = {obj, dlw_core->max_version, Py_None, Py_None};
  size_t given = 1 | PY_VECTORCALL_ARGUMENTS_OFFSET;
  if (device == NULL && copy == DLW_COPY_IF_NEEDED) {
    return PyObject_VectorcallMethod(dlw_core->str_dlpack, args, given,
                                     dlw_core->names_version);
  }
  PyObject *wanted = NULL;
  if (device != NULL) {
    wanted = Py_BuildValue("(ii)", device->device_type, device->device_id);
    if (wanted == NULL) return NULL;
    args[2] = wanted;
  }
  if (copy != DLW_COPY_IF_NEEDED) args[3] = copy ? Py_True : Py_False;
  PyObject *capsule =
      PyObject_VectorcallMethod(dlw_core->str_dlpack, args, given, dlw_core->names_all);
  Py_XDECREF(wanted);
  return capsule;
}

dlw_tensor *dlw_import_dlpack(PyObject *obj, const DLDevice *device, int copy) {
  dlw_tensor *tensor;
  if (device == NULL && copy == DLW_COPY_IF_NEEDED &&
      dlw_import_exchange(obj, &tensor)) {
    return tensor;
  }
  PyObject *capsule = call_dlpack(obj, device, copy);
  if (capsule == NULL && copy != DLW_COPY_NO &&
      PyErr_ExceptionMatches(PyExc_TypeError)) {
    /* A producer from before the keywords. The device is judged by the caller and a
     * copy is made below, so nothing of the request is lost; copy=False would be. */
    PyObject *first = PyErr_GetRaisedException();
    capsule = PyObject_CallMethodObjArgs(obj, dlw_core->str_dlpack, NULL);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      PyErr_SetRaisedException(first);
      return NULL;
    }
    Py_DECREF(first);
  }
  if (capsule == NULL) return NULL;
  tensor = dlw_import_capsule(capsule);
  if (tensor == NULL) {
    DLW_KEEP_EXCEPTION(Py_DECREF(capsule));
    return NULL;
  }
  Py_DECREF(capsule);
  int copied = (tensor->managed.flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
  tensor->managed.flags &= ~DLPACK_FLAG_BITMASK_IS_COPIED;
  if (copy == DLW_COPY_YES && !copied) {
    dlw_tensor *fresh = dlw_copy(tensor);
    DLW_KEEP_EXCEPTION(dlw_tensor_release(tensor));
    return fresh;
  }
  if (copy == DLW_COPY_NO && copied) {
    dlw_tensor_release(tensor);
    return dlw_fail("copied", "()");
  }
  return tensor;
}

static int exports_dlpack(PyObject *obj) {
  PyObject *raised = PyErr_GetRaisedException();
  int found = PyObject_HasAttr(obj, dlw_core->str_dlpack);
  if (raised != NULL) PyErr_SetRaisedException(raised);
  return found;
}

dlw_tensor *dlw_import_any(PyObject *obj) {
  if (dlw_is_tensor(obj)) {
    dlw_tensor *tensor = dlw_tensor_of(obj);
    return tensor != NULL ? dlw_share(tensor) : NULL;
  }
  dlw_tensor *tensor = NULL;
  if (PyObject_CheckBuffer(obj)) {
    tensor = dlw_import_buffer(obj);
    if (tensor != NULL) return tensor;
    if (exports_dlpack(
            obj)) { /* NumPy exports dtypes that buffers have no format for, as bfloat16
                     */
      PyObject *first = PyErr_GetRaisedException();
      tensor = dlw_import_dlpack(obj, NULL, DLW_COPY_IF_NEEDED);
      if (tensor != NULL) {
        Py_DECREF(first);
        return tensor;
      }
      PyErr_Clear();
      PyErr_SetRaisedException(first);
    }
  } else if (exports_dlpack(obj)) {
    tensor = dlw_import_dlpack(obj, NULL, DLW_COPY_IF_NEEDED);
  } else {
    dlw_fail("share", "(O)", Py_TYPE(obj));
  }
  if (tensor == NULL && !PyErr_ExceptionMatches(PyExc_TypeError)) {
    return dlw_explain(obj, 1);
  }
  return tensor;
}

/* --- export ---------------------------------------------------------------------- */

static void destroy_capsule(PyObject *capsule, const flavour *kind) {
  if (PyCapsule_IsValid(capsule, kind->used)) return;
  PyObject *kept = PyErr_GetRaisedException();
  void *pointer = PyCapsule_GetPointer(capsule, kind->name);
  if (pointer == NULL) {
    PyErr_WriteUnraisable(NULL); /* the capsule itself is being destroyed already */
  } else if (kind == &VERSIONED) {
    DLManagedTensorVersioned *managed = pointer;
    if (managed->deleter != NULL) managed->deleter(managed);
  } else {
    DLManagedTensor *managed = pointer;
    if (managed->deleter != NULL) managed->deleter(managed);
  }
  if (kept != NULL) PyErr_SetRaisedException(kept);
}
static void destroy_versioned(PyObject *capsule) {
  destroy_capsule(capsule, &VERSIONED);
}
static void destroy_legacy(PyObject *capsule) { destroy_capsule(capsule, &LEGACY); }

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
    capsule = PyCapsule_New(&share->managed, VERSIONED.name, destroy_versioned);
  } else {
    DLManagedTensor *legacy = dlw_payload(share);
    legacy->dl_tensor = *dlw_dl(share);
    legacy->manager_ctx = share;
    legacy->deleter = delete_legacy;
    capsule = PyCapsule_New(legacy, LEGACY.name, destroy_legacy);
  }
  if (capsule == NULL) dlw_tensor_release(share);
  return capsule;
}
