#include "import.h"

#include "capsule.h"

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
  dlw_status status = dlw_check(&described, 0);
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
  dlw_status status = dlw_check(described, flags);
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

static dlw_tensor *import_managed(PyObject *capsule, int versioned) {
  void *pointer = PyCapsule_GetPointer(capsule, versioned ? DLW_VERSIONED : DLW_LEGACY);
  if (pointer == NULL) return NULL;
  /* A legacy struct cannot say whether memory may be written, so that is not assumed.
   */
  dlw_tensor *tensor = versioned
                           ? describe_versioned(pointer)
                           : describe_imported(&((DLManagedTensor *)pointer)->dl_tensor,
                                               DLPACK_FLAG_BITMASK_READ_ONLY);
  if (tensor == NULL) return NULL;
  if (PyCapsule_SetName(capsule, versioned ? DLW_VERSIONED_USED : DLW_LEGACY_USED) <
      0) {
    dlw_tensor_release(tensor); /* the capsule still owns the memory */
    return NULL;
  }
  take_over(tensor, versioned ? pointer : NULL, versioned ? NULL : pointer);
  return tensor;
}

dlw_tensor *dlw_import_capsule(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, DLW_VERSIONED)) {
    return import_managed(capsule, 1);
  }
  if (PyCapsule_IsValid(capsule, DLW_LEGACY)) return import_managed(capsule, 0);
  if (PyCapsule_IsValid(capsule, DLW_VERSIONED_USED) ||
      PyCapsule_IsValid(capsule, DLW_LEGACY_USED)) {
    return dlw_fail("consumed", "()");
  }
  return dlw_fail("no_capsule", "(O)", capsule);
}

/* --- import: the exchange functions of other types ------------------------------- */

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
  if (PyCapsule_IsValid(capsule, DLW_EXCHANGE_API)) {
    api = our_major(PyCapsule_GetPointer(capsule, DLW_EXCHANGE_API));
  }
  Py_DECREF(capsule);
  return api != NULL && api->managed_tensor_from_py_object_no_sync != NULL ? api : NULL;
}

static int import_exchange(PyObject *obj, dlw_tensor **out) {
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
  if (device == NULL && copy == DLW_COPY_IF_NEEDED && import_exchange(obj, &tensor)) {
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
  return tensor;
}
