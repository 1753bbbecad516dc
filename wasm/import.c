/* More than 500 lines: one way in, whose steps release what the earlier ones took. */

#include "import.h"

#include "ndarray.h"

static PyObject *max_version; /* (1, 3) */
static PyObject *str_dlpack, *str_exchange, *str_mro, *str_dict, *str_is_neg;
static PyObject *names_version; /* ("max_version",) */
static PyObject *names_all;     /* ("max_version", "dl_device", "copy") */

int dlw_import_init(void) {
  if (names_all != NULL) return 0;
  max_version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  str_dlpack = PyUnicode_InternFromString("__dlpack__");
  str_exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  str_mro = PyUnicode_InternFromString("__mro__");
  str_dict = PyUnicode_InternFromString("__dict__");
  str_is_neg = PyUnicode_InternFromString("is_neg");
  /* Interned, like those of producers: other strings are compared by letters. */
  PyObject *version = PyUnicode_InternFromString("max_version");
  PyObject *device = PyUnicode_InternFromString("dl_device");
  PyObject *copy = PyUnicode_InternFromString("copy");
  names_version = Py_BuildValue("(O)", version);
  names_all = Py_BuildValue("(NNN)", version, device, copy);
  return PyErr_Occurred() ? -1 : 0;
}

/* --- common code ------------------------------------------------------------------ */

static int wants_alignment(const dlw_request *request) {
  return !request->any_alignment && request->copy != DLW_COPY_YES;
}

/* Fills in `tensor` from the description; -1 with an exception. */
static int describe(dlw_tensor *tensor, const DLTensor *described, uint64_t flags,
                    const dlw_request *request) {
  dlw_status status = dlw_tensor_describe(tensor, described, flags);
  DLTensor *dl = dlw_dl(tensor);
  if (status == DLW_OK && wants_alignment(request) && dlw_is_host(dl->device) &&
      !dlw_is_aligned(dl)) {
    status = DLW_MISALIGNED;
  }
  if (status == DLW_OK) return 0;
  dlw_raise(status, status == DLW_MISALIGNED ? dl : described);
  return -1;
}

dlw_tensor *dlw_import_described(size_t payload, const DLTensor *described,
                                 uint64_t flags, const dlw_request *request) {
  dlw_tensor *tensor = dlw_tensor_reserve(payload);
  if (tensor == NULL) return dlw_raise(DLW_NO_MEMORY, NULL);
  if (describe(tensor, described, flags, request) == 0) return tensor;
  dlw_tensor_release(tensor);
  return NULL;
}

/* A copy in place of a hold, which is released. */
static dlw_tensor *copy_instead(dlw_tensor *tensor) {
  dlw_tensor *fresh = dlw_copy(tensor);
  dlw_release_quietly(tensor);
  return fresh;
}

/* --- the buffer protocol ---------------------------------------------------------- */

#ifdef __EMSCRIPTEN__ /* Pyodide's one thread has the GIL whenever C runs */
static int enter_python(PyGILState_STATE *Py_UNUSED(state)) { return 1; }
static void leave_python(PyGILState_STATE state) { (void)state; }
#else
static int enter_python(PyGILState_STATE *state) {
  if (!Py_IsInitialized()) return 0; /* nothing left to give it back to */
  *state = PyGILState_Ensure();
  return 1;
}
static void leave_python(PyGILState_STATE state) { PyGILState_Release(state); }
#endif

static void drop_buffer(dlw_tensor *root) {
  PyGILState_STATE state = PyGILState_LOCKED;
  if (!enter_python(&state)) return;
  PyObject *kept = dlw_put_aside();
  PyBuffer_Release(dlw_payload(root));
  dlw_put_back(kept);
  leave_python(state);
}

static void drop_array(dlw_tensor *root) {
  PyGILState_STATE state = PyGILState_LOCKED;
  if (!enter_python(&state)) return;
  PyObject *kept = dlw_put_aside();
  Py_DECREF(*(PyObject **)dlw_payload(root));
  dlw_put_back(kept);
  leave_python(state);
}

PyObject *dlw_exporter(dlw_tensor *tensor) {
  dlw_tensor *root = tensor->root;
  if (root->drop == drop_array) return *(PyObject **)dlw_payload(root);
  return root->drop == drop_buffer ? ((Py_buffer *)dlw_payload(root))->obj : NULL;
}

/* Byte strides to element strides. Those of axes with one element, or of arrays without
 * any, carry no information and are not judged. */
static int element_strides(const Py_buffer *view, int64_t *strides) {
  for (int i = 0; i < view->ndim; i++) {
    strides[i] = view->strides[i] / view->itemsize;
    if (view->strides[i] % view->itemsize == 0) continue;
    if (view->shape[i] <= 1 || view->len == 0) continue;
    return dlw_fail(PyExc_BufferError,
                    "stride of axis %d is %zd bytes, no multiple of the item size %zd: "
                    "DLPack counts strides in elements; copy the array first",
                    i, view->strides[i], view->itemsize);
  }
  return 0;
}

/* We request no suboffsets, but an exporter may have them anyway. */
static int is_indirect(const Py_buffer *view) {
  for (int i = 0; view->suboffsets != NULL && i < view->ndim; i++) {
    if (view->suboffsets[i] >= 0) return 1;
  }
  return 0;
}

static int describe_buffer(dlw_tensor *tensor, const Py_buffer *view,
                           const dlw_request *request) {
  int64_t shape[DLW_MAX_NDIM], strides[DLW_MAX_NDIM];
  DLTensor described = {.data = view->buf, .device = {kDLCPU, 0}, .ndim = view->ndim};
  described.dtype = dlw_dtype_from_format(view->format, view->itemsize);
  if (described.dtype.code == kDLOpaqueHandle) {
    return dlw_fail(PyExc_BufferError,
                    "unsupported buffer format '%s' with items of %zd bytes: bool, "
                    "integers, floats and complex numbers in native byte order are "
                    "supported",
                    view->format != NULL ? view->format : "B", view->itemsize);
  }
  if (is_indirect(view)) {
    return dlw_fail(PyExc_BufferError,
                    "the buffer has suboffsets, pointers to pointers; copy it first");
  }
  int fits = view->ndim >= 0 && view->ndim <= DLW_MAX_NDIM;
  if (fits && view->shape != NULL) {
    described.shape = shape;
    for (int i = 0; i < view->ndim; i++) shape[i] = view->shape[i];
    if (view->strides != NULL) { /* ctypes never sets it */
      described.strides = strides;
      if (element_strides(view, strides) < 0) return -1;
    }
  }
  return describe(tensor, &described,
                  view->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0, request);
}

/* NULL without an exception if the buffer must be used. */
static dlw_tensor *import_ndarray(PyObject *array, const dlw_request *request) {
  int64_t shape[DLW_MAX_NDIM], strides[DLW_MAX_NDIM];
  DLTensor described;
  uint64_t flags;
  if (!dlw_describe_ndarray(array, &described, shape, strides, &flags)) return NULL;
  dlw_tensor *tensor =
      dlw_import_described(sizeof(PyObject *), &described, flags, request);
  if (tensor == NULL) return NULL;
  *(PyObject **)dlw_payload(tensor) = Py_NewRef(array);
  tensor->drop = drop_array;
  return tensor;
}

static dlw_tensor *import_view(PyObject *obj, const dlw_request *request) {
  dlw_tensor *tensor = dlw_tensor_reserve(sizeof(Py_buffer));
  if (tensor == NULL) return dlw_raise(DLW_NO_MEMORY, NULL);
  /* Filled in at its final place: it may point into itself, or exporters keep its
   * address. */
  Py_buffer *view = dlw_payload(tensor);
  if (PyObject_GetBuffer(obj, view, PyBUF_RECORDS_RO) < 0) {
    dlw_tensor_release(tensor);
    return NULL;
  }
  tensor->drop = drop_buffer;
  if (describe_buffer(tensor, view, request) < 0) {
    dlw_release_quietly(tensor);
    return NULL;
  }
  return tensor;
}

dlw_tensor *dlw_import_buffer(PyObject *obj, const dlw_request *request) {
  int is_ndarray = dlw_is_ndarray(obj);
  dlw_tensor *tensor = is_ndarray > 0 ? import_ndarray(obj, request) : NULL;
  if (tensor == NULL && is_ndarray != 0 && PyErr_Occurred()) return NULL;
  if (tensor == NULL) tensor = import_view(obj, request);
  if (tensor == NULL || request->copy != DLW_COPY_YES) return tensor;
  return copy_instead(tensor);
}

/* --- managed tensors and capsules ------------------------------------------------- */

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

int dlw_is_imported(dlw_tensor *tensor) { return tensor->root->drop == drop_imported; }

/* The returned tensor has no drop yet, so the memory keeps its owner. */
static dlw_tensor *describe_imported(const imported *from, const dlw_request *request) {
  const DLTensor *described;
  uint64_t flags;
  if (from->legacy != NULL) {
    /* It cannot say whether the memory is writable, so this does not assume it. */
    described = &from->legacy->dl_tensor;
    flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  } else if (from->versioned->version.major == DLPACK_MAJOR_VERSION) {
    described = &from->versioned->dl_tensor;
    flags = from->versioned->flags;
  } else { /* nothing after the flags may be read */
    return (void *)PyErr_Format(
        PyExc_BufferError,
        "the producer speaks DLPack %u.%u, this library %d.%d: the major versions must "
        "be equal",
        from->versioned->version.major, from->versioned->version.minor,
        DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  }
  dlw_tensor *tensor =
      dlw_import_described(sizeof(imported), described, flags, request);
  if (tensor != NULL) tensor->unsettled = from->legacy != NULL;
  return tensor;
}

static void take_over(dlw_tensor *tensor, const imported *from) {
  *(imported *)dlw_payload(tensor) = *from;
  tensor->drop = drop_imported;
}

dlw_tensor *dlw_import_versioned(DLManagedTensorVersioned *managed) {
  imported from = {.versioned = managed};
  dlw_tensor *tensor = describe_imported(&from, &DLW_ANY);
  if (tensor != NULL) take_over(tensor, &from);
  return tensor;
}

/* Takes over, or copies and releases, the tensor of a capsule of that flavour. */
static dlw_tensor *import_managed(PyObject *capsule, void *pointer, int versioned,
                                  int copy, const dlw_request *request) {
  imported from = {versioned ? pointer : NULL, versioned ? NULL : pointer};
  dlw_tensor *tensor = describe_imported(&from, request), *fresh = NULL;
  if (tensor == NULL) return NULL;
  /* The producer's own copy need not be aligned. */
  copy |= request->copy == DLW_COPY_YES && dlw_is_host(dlw_dl(tensor)->device) &&
          !dlw_is_aligned(dlw_dl(tensor));
  if (copy) fresh = dlw_copy(tensor);
  if ((copy && fresh == NULL) ||
      PyCapsule_SetName(capsule, versioned ? DLW_VERSIONED_USED : DLW_LEGACY_USED) <
          0) {
    dlw_tensor_release(fresh);
    dlw_tensor_release(tensor); /* the capsule still owns the memory */
    return NULL;
  }
  take_over(tensor, &from);
  if (!copy) return tensor;
  dlw_release_quietly(tensor);
  return fresh;
}

/* Copies if `copy` says so; the caller of the producer handles the request's. */
static dlw_tensor *import_capsule(PyObject *capsule, int copy,
                                  const dlw_request *request) {
  void *pointer = PyCapsule_GetPointer(capsule, DLW_VERSIONED);
  if (pointer != NULL) return import_managed(capsule, pointer, 1, copy, request);
  PyErr_Clear();
  pointer = PyCapsule_GetPointer(capsule, DLW_LEGACY);
  if (pointer != NULL) return import_managed(capsule, pointer, 0, copy, request);
  PyErr_Clear();
  if (PyCapsule_IsValid(capsule, DLW_VERSIONED_USED) ||
      PyCapsule_IsValid(capsule, DLW_LEGACY_USED)) {
    PyErr_SetString(PyExc_ValueError,
                    "this DLPack capsule was consumed already; call __dlpack__ again");
  } else {
    PyErr_Format(PyExc_TypeError,
                 "__dlpack__ must return a capsule named '" DLW_LEGACY
                 "' or "
                 "'" DLW_VERSIONED "', not %R",
                 capsule);
  }
  return NULL;
}

dlw_tensor *dlw_import_capsule(PyObject *capsule, const dlw_request *request) {
  return import_capsule(capsule, request->copy == DLW_COPY_YES, request);
}

/* --- the exchange functions of other types ---------------------------------------- */

/* The functions of our major version, after those of newer ones; NULL: none. The chain
 * has at most one entry for each major version, so a longer one is broken. */
static const DLPackExchangeAPI *our_major(const DLPackExchangeAPIHeader *header) {
  for (int i = 0; i < 16 && header != NULL; i++, header = header->prev_api) {
    if (header->version.major == DLPACK_MAJOR_VERSION) {
      return (const DLPackExchangeAPI *)header;
    }
  }
  return NULL;
}

/* An attribute; NULL without an exception if it is absent, and -1 for other errors. */
static int get_optional(PyObject *obj, PyObject *name, PyObject **value) {
  *value = PyObject_GetAttr(obj, name);
  if (*value != NULL) return 0;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

/* PyTorch keeps the negation of x.conj().imag as a bit of the tensor, and exports the
 * elements without it. Such a view steps over the real parts, so other tensors need not
 * be asked, unless they were copied. -1 with an exception. */
static int check_negated(PyObject *obj, dlw_tensor *tensor,
                         const dlw_request *request) {
  const DLTensor *dl = dlw_dl(tensor);
  PyObject *method;
  if (dl->dtype.code != kDLFloat) return 0;
  if (request->copy != DLW_COPY_YES && dlw_is_contiguous(dl) && dlw_size(dl) != 1) {
    return 0;
  }
  if (get_optional(obj, str_is_neg, &method) < 0) return -1;
  if (method == NULL) return 0;
  PyObject *said = PyObject_CallNoArgs(method);
  Py_DECREF(method);
  if (said == NULL && !dlw_is_refusal()) return -1;
  PyErr_Clear(); /* a method of the same name with another meaning */
  int negated = said == Py_True;
  Py_XDECREF(said);
  if (!negated) return 0;
  return dlw_fail(
      PyExc_BufferError,
      "the elements of this %R are negated lazily, which its DLPack export does "
      "not say: use x.resolve_neg()",
      Py_TYPE(obj));
}

/* Whether the exchange functions of a type replace its __dlpack__: of its classes, the
 * first one that defines either defines the functions. A subclass may have a __dlpack__
 * of its own. -1 with an exception. */
static int replace_dlpack(PyTypeObject *type) {
  PyObject *mro = PyObject_GetAttr((PyObject *)type, str_mro);
  if (mro == NULL) return -1;
  Py_ssize_t count = PyTuple_Check(mro) ? PyTuple_Size(mro) : 0;
  int functions = 0, own = 0;
  for (Py_ssize_t i = 0; i < count && functions == 0 && own == 0; i++) {
    PyObject *dict = PyObject_GetAttr(PyTuple_GetItem(mro, i), str_dict);
    functions = dict != NULL ? PySequence_Contains(dict, str_exchange) : -1;
    if (functions == 0) own = PySequence_Contains(dict, str_dlpack);
    Py_XDECREF(dict);
  }
  Py_DECREF(mro);
  return own < 0 ? -1 : functions;
}

/* Looks at the type, as DLPack says: instances may have an attribute of that name, too.
 * NULL if __dlpack__ must be called; -1 with an exception. */
static int api_of(PyTypeObject *type, const DLPackExchangeAPI **api) {
  /* The last static type that has none. Those types cannot get one later, and are never
   * freed, so the address stays theirs. */
  static PyTypeObject *without;
  *api = NULL;
  if (type == without) return 0;
  PyObject *capsule;
  if (get_optional((PyObject *)type, str_exchange, &capsule) < 0) return -1;
  if (capsule == NULL) {
    if (!(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE)) without = type;
    return 0;
  }
  const DLPackExchangeAPI *found = NULL; /* lives as long as the process */
  if (PyCapsule_IsValid(capsule, DLW_EXCHANGE_API)) {
    found = our_major(PyCapsule_GetPointer(capsule, DLW_EXCHANGE_API));
  }
  Py_DECREF(capsule);
  if (found == NULL || found->managed_tensor_from_py_object_no_sync == NULL) return 0;
  int replaces = replace_dlpack(type);
  if (replaces > 0) *api = found;
  return replaces < 0 ? -1 : 0;
}

/* The result of the functions of obj's type. `*out` is NULL if there are none, or they
 * fail: the errors of __dlpack__ are better. -1 for exceptions that must propagate. */
static int import_exchange(PyObject *obj, dlw_tensor **out) {
  const DLPackExchangeAPI *api;
  *out = NULL;
  if (api_of(Py_TYPE(obj), &api) < 0) return -1;
  if (api == NULL) return 0;
  DLManagedTensorVersioned *managed = NULL;
  int failed = api->managed_tensor_from_py_object_no_sync(obj, &managed);
  if (!failed && managed != NULL) {
    *out = dlw_import_versioned(managed);
    if (*out == NULL && managed->deleter != NULL) {
      PyObject *kept = dlw_put_aside();
      managed->deleter(managed);
      dlw_put_back(kept);
    }
    /* PyTorch's functions export a conjugated view as if it were not; its __dlpack__
     * raises. */
    if (*out != NULL && dlw_is_complex(dlw_dl(*out)->dtype)) {
      dlw_release_quietly(*out);
      *out = NULL;
    }
    if (*out != NULL && check_negated(obj, *out, &DLW_ANY) < 0) {
      dlw_release_quietly(*out);
      *out = NULL;
      return -1;
    }
  }
  if (*out != NULL || !PyErr_Occurred()) return 0;
  if (dlw_is_fatal()) return -1;
  PyErr_Clear();
  return 0;
}

/* A hold without a capsule, if possible. `*out` is NULL if __dlpack__ must be called;
 * -1 for exceptions that must propagate. */
static int import_directly(PyObject *obj, const dlw_request *request,
                           dlw_tensor **out) {
  int is_ndarray = dlw_is_ndarray(obj);
  if (is_ndarray <= 0) return is_ndarray < 0 ? -1 : import_exchange(obj, out);
  *out = dlw_import_buffer(obj, request);
  if (*out != NULL) return 0;
  if (!dlw_is_refusal()) return -1;
  PyErr_Clear(); /* NumPy's own errors are better, and it may support more dtypes */
  return 0;
}

/* --- __dlpack__ ------------------------------------------------------------------- */

static PyObject *call_dlpack(PyObject *obj, const dlw_request *request) {
  PyObject *args[4] = {obj, max_version, Py_None, Py_None};
  size_t given = 1 | PY_VECTORCALL_ARGUMENTS_OFFSET;
  if (request->device == NULL && request->copy == DLW_COPY_IF_NEEDED) {
    return PyObject_VectorcallMethod(str_dlpack, args, given, names_version);
  }
  PyObject *wanted = NULL;
  if (request->device != NULL) {
    wanted =
        Py_BuildValue("(ii)", request->device->device_type, request->device->device_id);
    if (wanted == NULL) return NULL;
    args[2] = wanted;
  }
  if (request->copy != DLW_COPY_IF_NEEDED) args[3] = request->copy ? Py_True : Py_False;
  PyObject *capsule = PyObject_VectorcallMethod(str_dlpack, args, given, names_all);
  Py_XDECREF(wanted);
  return capsule;
}

/* A producer from before the keywords, which raised TypeError. The caller checks the
 * device and copies are made here, so the request is met; `settle` sees to copy=False.
 */
static PyObject *call_old_dlpack(PyObject *obj) {
  PyObject *first = dlw_put_aside();
  PyObject *capsule = PyObject_CallMethodObjArgs(obj, str_dlpack, NULL);
  if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    PyErr_SetRaisedException(first);
    return NULL;
  }
  Py_XDECREF(first);
  return capsule;
}

/* IS_COPIED, if the capsule has it: whether this export made a copy. */
static int has_copied(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, DLW_VERSIONED)) return 0;
  const DLManagedTensorVersioned *managed =
      PyCapsule_GetPointer(capsule, DLW_VERSIONED);
  return managed->version.major == DLPACK_MAJOR_VERSION &&
         (managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
}

/* Whether the producer is also a buffer over the same elements; `*readonly` is what
 * that says. -1 with exceptions that must propagate. */
static int has_as_buffer(dlw_tensor *tensor, PyObject *obj, int *readonly) {
  if (!PyObject_CheckBuffer(obj)) return 0;
  Py_buffer view;
  if (PyObject_GetBuffer(obj, &view, PyBUF_RECORDS_RO) < 0) {
    if (!dlw_is_refusal()) return -1;
    PyErr_Clear();
    return 0;
  }
  const DLTensor *dl = dlw_dl(tensor);
  int same = (uint64_t)view.len == dlw_nbytes(dl, tensor->managed.flags) &&
             (view.len == 0 || view.buf == dlw_first(dl));
  *readonly = view.readonly;
  PyBuffer_Release(&view);
  return same;
}

/* A legacy capsule does not say whether its memory may be written, nor, of a producer
 * from before the keywords (`old`), whether it is a copy. A buffer over the same
 * elements says both: an ndarray of NumPy before 2.1. -1 with an exception. */
static int settle(dlw_tensor *tensor, PyObject *obj, int old,
                  const dlw_request *request) {
  int asked = old && request->copy == DLW_COPY_NO, readonly = 1, same = 0;
  if (tensor->unsettled || asked) same = has_as_buffer(tensor, obj, &readonly);
  if (same < 0) return -1;
  if (same && tensor->unsettled && !readonly) {
    tensor->managed.flags &= ~(uint64_t)DLPACK_FLAG_BITMASK_READ_ONLY;
    tensor->unsettled = 0;
  }
  if (same || !asked) return 0;
  return dlw_fail(dlw_CopyError,
                  "the producer speaks DLPack before 1.0, and its tensor is not the "
                  "memory of its buffer: use copy=None");
}

dlw_tensor *dlw_import_dlpack(PyObject *obj, const dlw_request *request) {
  dlw_tensor *tensor;
  if (request->device == NULL && request->copy == DLW_COPY_IF_NEEDED) {
    if (import_directly(obj, request, &tensor) < 0) return NULL;
    if (tensor != NULL) return tensor;
  }
  PyObject *capsule = call_dlpack(obj, request);
  int old = capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError) &&
            (request->copy != DLW_COPY_NO || PyObject_CheckBuffer(obj));
  if (old) capsule = call_old_dlpack(obj);
  if (capsule == NULL) return NULL;
  int copied = request->copy != DLW_COPY_IF_NEEDED && has_copied(capsule);
  if (request->copy == DLW_COPY_NO && copied) {
    Py_DECREF(capsule);
    PyErr_SetString(dlw_CopyError,
                    "the producer copied although copy=False was asked for");
    return NULL;
  }
  tensor = import_capsule(capsule, request->copy == DLW_COPY_YES && !copied, request);
  if (tensor != NULL && (check_negated(obj, tensor, request) < 0 ||
                         settle(tensor, obj, old, request) < 0)) {
    dlw_release_quietly(tensor);
    tensor = NULL;
  }
  PyObject *kept = dlw_put_aside();
  Py_DECREF(capsule);
  dlw_put_back(kept);
  return tensor;
}

int dlw_exports_dlpack(PyObject *obj) {
  PyObject *method;
  if (get_optional(obj, str_dlpack, &method) < 0) return -1;
  Py_XDECREF(method);
  return method != NULL;
}

/* Tries __dlpack__ for rejected buffers: NumPy exports dtypes for which buffers have no
 * format. If there is no other way, the first error stays. */
static dlw_tensor *import_refused(PyObject *obj, const dlw_request *request) {
  PyObject *first = dlw_put_aside();
  int exports = dlw_exports_dlpack(obj);
  dlw_tensor *tensor = exports > 0 ? dlw_import_dlpack(obj, request) : NULL;
  if (tensor != NULL || (PyErr_Occurred() && !dlw_is_refusal())) {
    Py_XDECREF(first);
    return tensor;
  }
  PyErr_Clear();
  PyErr_SetRaisedException(first);
  return NULL;
}

dlw_tensor *dlw_import_any(PyObject *obj, const dlw_request *request) {
  if (PyObject_CheckBuffer(obj)) {
    dlw_tensor *tensor = dlw_import_buffer(obj, request);
    if (tensor != NULL || !dlw_is_refusal()) return tensor;
    return import_refused(obj, request);
  }
  int exports = dlw_exports_dlpack(obj);
  if (exports < 0) return NULL;
  if (exports) return dlw_import_dlpack(obj, request);
  PyErr_Format(PyExc_TypeError,
               "cannot share a %R: objects with __dlpack__ or the buffer protocol are "
               "supported; make an array of it first, for example with np.asarray(x)",
               Py_TYPE(obj));
  return NULL;
}
