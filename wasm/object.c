/* More than 500 lines: one Python type with its slots. */

#include "object.h"

#include "export.h"
#include "ndarray.h"

typedef struct tensor_object {
  PyObject_HEAD;
  dlw_tensor *tensor;                    /* our hold; NULL once released */
  dlw_tensor *root;                      /* set while we have a hold, or views exist */
  struct tensor_object *previous, *next; /* in the list of unreleased Tensors */
  PyObject *js;                          /* the JavaScript twin, kept by Python code */
  PyObject *weakrefs;
  PyObject *interrupt; /* the class of what ended a request for a buffer, or NULL */
  uint32_t views;      /* exported buffers; each has a hold of its own */
  uint32_t on_gpu;     /* also once released, for the message */
} tensor_object;

static PyTypeObject *base_type;   /* the type below */
static PyTypeObject *tensor_type; /* dlpack_web.Tensor, made of it in Python */
static PyObject *explain;
static PyObject *str_read_blocking;

static tensor_object *alive; /* the first unreleased Tensor */

static tensor_object *as_tensor(PyObject *self) { return (tensor_object *)self; }

static void link_alive(tensor_object *object) {
  object->next = alive;
  if (alive != NULL) alive->previous = object;
  alive = object;
}

static void unlink_alive(tensor_object *object) {
  if (object->next != NULL) object->next->previous = object->previous;
  if (object->previous != NULL) object->previous->next = object->next;
  if (alive == object) alive = object->next;
  object->previous = object->next = NULL;
}

PyObject *dlw_tensors_alive(void) {
  PyObject *list = PyList_New(0);
  for (tensor_object *each = alive; list != NULL && each != NULL; each = each->next) {
    /* One whose deallocation CPython deferred, as it does at depth: a reference to it
     * would be dropped a second time. */
    if (Py_REFCNT((PyObject *)each) == 0) continue;
    if (PyList_Append(list, (PyObject *)each) < 0) Py_CLEAR(list);
  }
  if (list != NULL && PyList_Reverse(list) < 0) Py_CLEAR(list); /* the oldest first */
  return list;
}

/* --- between objects and tensors -------------------------------------------------- */

int dlw_is_tensor(PyObject *obj) { return PyObject_TypeCheck(obj, base_type); }

static dlw_tensor *held(PyObject *self) {
  dlw_tensor *tensor = as_tensor(self)->tensor;
  if (tensor != NULL) return tensor;
  PyErr_SetString(dlw_ReleasedError,
                  as_tensor(self)->on_gpu
                      ? "this Tensor was released; upload the elements again"
                      : "this Tensor was released; make a new one from the array it "
                        "shared");
  return NULL;
}

dlw_tensor *dlw_tensor_of(PyObject *obj) {
  if (dlw_is_tensor(obj)) return held(obj);
  return (void *)PyErr_Format(PyExc_TypeError, "expected a dlpack_web.Tensor, not a %R",
                              Py_TYPE(obj));
}

PyObject *dlw_tensor_object(dlw_tensor *tensor) {
  if (tensor == NULL) return NULL;
  PyObject *self = PyType_GenericAlloc(tensor_type, 0);
  if (self == NULL) {
    dlw_release_quietly(tensor);
    return NULL;
  }
  as_tensor(self)->tensor = tensor;
  as_tensor(self)->root = tensor->root;
  as_tensor(self)->on_gpu = !dlw_is_host(dlw_dl(tensor)->device);
  link_alive(as_tensor(self));
  return self;
}

int dlw_bind_tensor(PyObject *tensor_class, PyObject *explain_function) {
  if (!PyType_Check(tensor_class) ||
      !PyType_IsSubtype((PyTypeObject *)tensor_class, base_type)) {
    return dlw_fail(PyExc_TypeError, "a subclass of _core.Tensor is needed");
  }
  dlw_set((PyObject **)&tensor_type, Py_NewRef(tensor_class));
  dlw_set(&explain, Py_NewRef(explain_function));
  return 0;
}

/* --- any object ------------------------------------------------------------------- */

/* What `explain` makes of the pending refusal of `obj`: a hold on the elements after
 * all, or NULL with the exception annotated, or replaced by ours when we were borrowing
 * (a producer's own exceptions propagate unchanged). Other exceptions stay. */
static dlw_tensor *explained(PyObject *obj, int borrowing, const dlw_request *request) {
  if (!dlw_is_refusal() && !PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
  PyObject *raised = dlw_put_aside();
  int copied = request->copy == DLW_COPY_YES ||
               (request->any_alignment && request->copy != DLW_COPY_NO);
  PyObject *better =
      PyObject_CallFunctionObjArgs(explain, obj, raised, borrowing ? Py_True : Py_False,
                                   copied ? Py_True : Py_False, NULL);
  if (better == NULL) {
    /* Our error must not hide the first one, nor that an interrupt. */
    int fatal = dlw_is_fatal();
    if (!fatal) PyErr_SetRaisedException(raised);
    if (fatal) Py_DECREF(raised);
    return NULL;
  }
  Py_DECREF(raised);
  if (!dlw_is_tensor(better)) {
    PyErr_SetRaisedException(better);
    return NULL;
  }
  dlw_tensor *tensor = held(better), *hold = NULL;
  if (tensor != NULL) {
    hold = request->copy == DLW_COPY_YES ? dlw_copy(tensor) : dlw_share(tensor);
  }
  Py_DECREF(better);
  return hold;
}

dlw_tensor *dlw_borrow(PyObject *obj, const dlw_request *request) {
  if (dlw_is_tensor(obj)) {
    dlw_tensor *tensor = held(obj);
    return tensor != NULL ? dlw_share(tensor) : NULL;
  }
  if (dlw_check_mask(obj) < 0) return NULL;
  dlw_tensor *tensor = dlw_import_any(obj, request);
  return tensor != NULL ? tensor : explained(obj, 1, request);
}

dlw_tensor *dlw_borrow_buffer(PyObject *obj) {
  dlw_tensor *tensor = NULL;
  if (dlw_check_mask(obj) < 0) return NULL;
  if (PyObject_CheckBuffer(obj)) {
    tensor = dlw_import_buffer(obj, &DLW_ANY);
  } else {
    PyErr_Format(PyExc_TypeError,
                 "from_buffer() needs an object with the buffer protocol, not a %R; "
                 "for one with __dlpack__ use from_dlpack()",
                 Py_TYPE(obj));
  }
  return tensor != NULL ? tensor : explained(obj, 1, &DLW_ANY);
}

/* Whether one more hold is enough: a capsule would add nothing, and would lose that it
 * is unknown whether the memory is read-only. */
static int is_as_wanted(dlw_tensor *tensor, const dlw_request *request) {
  const DLDevice *here = &dlw_dl(tensor)->device, *wanted = request->device;
  if (request->copy == DLW_COPY_YES) return 0;
  if (wanted == NULL) return 1;
  if (wanted->device_type != here->device_type) return 0;
  if (wanted->device_id != here->device_id) return 0;
  return request->any_alignment || !dlw_is_host(*here) ||
         dlw_is_aligned(dlw_dl(tensor));
}

dlw_tensor *dlw_consume(PyObject *obj, const dlw_request *request) {
  if (PyCapsule_CheckExact(obj)) return dlw_import_capsule(obj, request);
  if (Py_IS_TYPE(obj, tensor_type)) {
    dlw_tensor *tensor = held(obj);
    if (tensor == NULL) return NULL;
    if (is_as_wanted(tensor, request)) return dlw_share(tensor);
  }
  if (dlw_check_mask(obj) < 0) return NULL;
  dlw_tensor *tensor = dlw_import_dlpack(obj, request);
  return tensor != NULL ? tensor : explained(obj, 0, request);
}

/* --- life ------------------------------------------------------------------------- */

static void let_go(PyObject *self) {
  dlw_tensor *tensor = as_tensor(self)->tensor;
  as_tensor(self)->tensor = NULL;
  unlink_alive(as_tensor(self));
  dlw_release_quietly(tensor);
  tensor_object *object = as_tensor(self);
  if (object->js == NULL && object->interrupt == NULL) return;
  PyObject *kept = dlw_put_aside();
  dlw_set(&object->js, NULL);
  dlw_set(&object->interrupt, NULL);
  dlw_put_back(kept);
}

/* The object that the memory keeps alive counts as ours if all holds on it are ours:
 * our own, and those of exported views, which keep us alive. Cycles through other holds
 * (capsules, JavaScript) are not detected, and so never cut. Borrowed; NULL: there is
 * none. */
static PyObject *kept_alive(PyObject *self) {
  tensor_object *object = as_tensor(self);
  uint32_t holds = object->views + (object->tensor != NULL);
  if (holds == 0 || atomic_load(&object->root->holders) != holds) return NULL;
  return dlw_exporter(object->root);
}

static int tensor_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_tensor(self)->js);
  Py_VISIT(as_tensor(self)->interrupt);
  Py_VISIT(kept_alive(self));
  return 0;
}

/* Garbage is cleared object by object, and our memory may be one of them. Code that
 * runs meanwhile can still reach us: a deleter may request all live tensors. So we
 * release before it begins. */
static void tensor_finalize(PyObject *self) {
  if (kept_alive(self) != NULL) let_go(self);
}

static int tensor_clear(PyObject *self) {
  let_go(self);
  return 0;
}

static void tensor_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  unlink_alive(as_tensor(self)); /* first: callbacks must not find a dying object */
  if (as_tensor(self)->weakrefs != NULL) PyObject_ClearWeakRefs(self);
  let_go(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                            PyObject *Py_UNUSED(kwargs)) {
  return PyErr_Format(
      PyExc_TypeError,
      "%R cannot be called: make tensors with dlpack_web.from_dlpack(x), "
      "from_buffer(x) or empty(shape, dtype)",
      type);
}

static PyObject *tensor_release(PyObject *self, PyObject *Py_UNUSED(unused)) {
  let_go(self);
  Py_RETURN_NONE;
}

/* --- attributes ------------------------------------------------------------------- */

static PyObject *int64_tuple(const int64_t *values, int32_t count) {
  PyObject *tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != NULL && i < count; i++) {
    PyObject *value = PyLong_FromLongLong(values[i]);
    if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *get_dims(PyObject *self, void *strides) {
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  const DLTensor *dl = dlw_dl(tensor);
  return int64_tuple(strides != NULL ? dl->strides : dl->shape, dl->ndim);
}

static PyObject *get_byte_offset(PyObject *self, void *Py_UNUSED(unused)) {
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  return PyLong_FromUnsignedLongLong(dlw_dl(tensor)->byte_offset);
}

static PyObject *get_dtype(PyObject *self, void *Py_UNUSED(unused)) {
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  return PyLong_FromUnsignedLong(dlw_dtype_pack(dlw_dl(tensor)->dtype));
}

static PyObject *get_padded(PyObject *self, void *Py_UNUSED(unused)) {
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  uint64_t padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return PyBool_FromLong((tensor->managed.flags & padded) != 0);
}

static PyObject *get_read_only(PyObject *self, void *Py_UNUSED(unused)) {
  dlw_tensor *tensor = held(self);
  return tensor != NULL ? PyBool_FromLong(dlw_read_only(tensor)) : NULL;
}

static PyObject *get_released(PyObject *self, void *Py_UNUSED(unused)) {
  return PyBool_FromLong(as_tensor(self)->tensor == NULL);
}

/* The object whose buffer the memory is; True for a DLPack producer's, else False. */
static PyObject *get_owner(PyObject *self, void *Py_UNUSED(unused)) {
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  PyObject *exporter = dlw_exporter(tensor);
  if (exporter != NULL) return Py_NewRef(exporter);
  return PyBool_FromLong(dlw_is_imported(tensor));
}

static PyGetSetDef TENSOR_GETSET[] = {
    {"shape", get_dims, NULL,
     "Extents, a tuple of ints.\n\n"
     ">>> dlw.empty((2, 3)).shape\n"
     "(2, 3)",
     NULL},
    {"strides", get_dims, NULL,
     "Steps between neighbours in elements, a tuple of ints.\n\n"
     ">>> dlw.from_buffer(bytes(6)).reshape((2, 3))[:, ::2].strides\n"
     "(3, 2)",
     "strides"},
    {"byte_offset", get_byte_offset, NULL,
     "Bytes from the start of the memory to element 0; 0 on the CPU.\n\n"
     ">>> dlw.empty((2, 3))[1].byte_offset\n"
     "0",
     NULL},
    {"padded", get_padded, NULL,
     "Whether each element of less than a byte has a byte of its own.\n\n"
     ">>> dlw.empty(8, 'int4').padded, dlw.empty(8, 'int4').nbytes\n"
     "(False, 4)",
     NULL},
    {"read_only", get_read_only, NULL,
     "Whether the elements must not be written.\n\n"
     ">>> dlw.from_buffer(b'abc').read_only\n"
     "True",
     NULL},
    {"released", get_released, NULL,
     "Whether release() was called.\n\n"
     ">>> with dlw.empty(3) as t:\n"
     "...     pass\n"
     ">>> t.released\n"
     "True",
     NULL},
    {"_dtype", get_dtype, NULL, NULL, NULL},
    {"_owner", get_owner, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- arguments -------------------------------------------------------------------- */

static int find_name(PyObject *name, PyObject *const *names, int count) {
  for (int i = 0; i < count; i++) {
    if (name == names[i]) return i; /* nearly always: both are interned */
  }
  for (int i = 0; i < count; i++) {
    if (PyUnicode_Compare(name, names[i]) == 0) return i;
  }
  return -1;
}

int dlw_parse_keywords(const char *function, PyObject *const *args, PyObject *names,
                       PyObject *const *keywords, int count, PyObject **given) {
  Py_ssize_t size = names != NULL ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    int which = find_name(name, keywords, count);
    if (which < 0) {
      return dlw_fail(PyExc_TypeError, "%s() got an unexpected keyword argument %R",
                      function, name);
    }
    given[which] = args[i];
  }
  return 0;
}

int dlw_parse_copy(PyObject *value, int *copy) {
  if (value == NULL || value == Py_None) {
    *copy = DLW_COPY_IF_NEEDED;
  } else if (value == Py_True || value == Py_False) {
    *copy = value == Py_True ? DLW_COPY_YES : DLW_COPY_NO;
  } else {
    return dlw_fail(PyExc_TypeError, "copy must be True, False or None, not %R", value);
  }
  return 0;
}

int32_t dlw_parse_dims(PyObject *tuple, int64_t dims[DLW_MAX_NDIM]) {
  Py_ssize_t count = PyTuple_Size(tuple);
  for (Py_ssize_t i = 0; i < count && i < DLW_MAX_NDIM; i++) {
    int overflow;
    dims[i] = PyLong_AsLongLongAndOverflow(PyTuple_GetItem(tuple, i), &overflow);
    if (overflow != 0) dims[i] = overflow > 0 ? INT64_MAX : INT64_MIN;
    if (dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  return count < INT32_MAX ? (int32_t)count : INT32_MAX;
}

/* Two ints, for max_version and dl_device; those beyond an int32 become its limits. 0
 * if it is not such a pair. */
static int to_pair(PyObject *value, int32_t pair[2]) {
  if (!PyTuple_Check(value) || PyTuple_Size(value) != 2) return 0;
  for (int i = 0; i < 2; i++) {
    PyObject *item = PyTuple_GetItem(value, i);
    if (!PyLong_Check(item)) return 0;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow > 0 || number > INT32_MAX) number = INT32_MAX;
    if (overflow < 0 || number < INT32_MIN) number = INT32_MIN;
    pair[i] = (int32_t)number;
  }
  return 1;
}

/* 1 when it was given, 0 when not, -1 with TypeError. */
static int parse_pair(PyObject *value, const char *what, int32_t pair[2]) {
  if (value == NULL || value == Py_None) return 0;
  if (to_pair(value, pair)) return 1;
  return dlw_fail(PyExc_TypeError, "%s must be None or a tuple of two ints, not %R",
                  what, value);
}

/* --- __dlpack__ ------------------------------------------------------------------- */

enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, KEYWORDS };
static PyObject *keywords[KEYWORDS]; /* "stream", ... */

/* Borrowed references by keyword; NULL: not given. -1 with TypeError. */
static int parse_dlpack(PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                        PyObject *given[KEYWORDS]) {
  if (nargs != 0) {
    return dlw_fail(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
  }
  return dlw_parse_keywords("__dlpack__", args, names, keywords, KEYWORDS, given);
}

/* A copy of a GPU tensor on the CPU; only Python knows whether it may wait for one. */
static PyObject *read_blocking(PyObject *self) {
  PyObject *host = PyObject_CallMethodObjArgs(self, str_read_blocking, NULL);
  if (host == NULL) return NULL;
  dlw_tensor *tensor = dlw_is_tensor(host) ? as_tensor(host)->tensor : NULL;
  if (tensor != NULL && dlw_is_host(dlw_dl(tensor)->device)) return host;
  Py_DECREF(host);
  return PyErr_Format(PyExc_BufferError,
                      "the tensor could not be read back; use "
                      "await t.to_host()");
}

static PyObject *export_from_gpu(PyObject *self, int copy, int versioned) {
  if (copy == DLW_COPY_NO) {
    return PyErr_Format(dlw_CopyError,
                        "moving a WebGPU tensor to the CPU copies it; use copy=None");
  }
  PyObject *host = read_blocking(self);
  if (host == NULL) return NULL;
  dlw_capsule_options options = {.versioned = versioned, .copied = 1};
  PyObject *capsule = dlw_export_capsule(as_tensor(host)->tensor, options);
  Py_DECREF(host);
  return capsule;
}

static PyObject *export_copy(dlw_tensor *tensor, dlw_capsule_options options) {
  if (!dlw_is_host(dlw_dl(tensor)->device)) {
    return PyErr_Format(PyExc_BufferError,
                        "copy=True is supported for CPU tensors only; for a WebGPU "
                        "tensor use await t.to_host()");
  }
  if (options.device != NULL && options.device->device_type != kDLCPU) {
    return PyErr_Format(PyExc_BufferError,
                        "copy=True gives memory of the CPU (1, 0), not of device "
                        "(%d, %d); use dl_device=(1, 0)",
                        options.device->device_type, options.device->device_id);
  }
  dlw_tensor *fresh = dlw_copy(tensor);
  if (fresh == NULL) return NULL;
  options.copied = 1;
  PyObject *capsule = dlw_export_capsule(fresh, options);
  dlw_release_quietly(fresh);
  return capsule;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *names) {
  PyObject *given[KEYWORDS] = {NULL};
  int32_t version[2] = {0, 0}, pair[2] = {0, 0};
  int copy;
  if (parse_dlpack(args, nargs, names, given) < 0) return NULL;
  if (given[STREAM] != NULL && given[STREAM] != Py_None) {
    return PyErr_Format(PyExc_ValueError,
                        "stream must be None for CPU and WebGPU tensors, not %R",
                        given[STREAM]);
  }
  if (dlw_parse_copy(given[COPY], &copy) < 0) return NULL;
  if (parse_pair(given[MAX_VERSION], "max_version", version) < 0) return NULL;
  int moves = parse_pair(given[DL_DEVICE], "dl_device", pair);
  if (moves < 0) return NULL;
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  DLDevice here = dlw_dl(tensor)->device, there = {pair[0], pair[1]};
  dlw_capsule_options options = {.versioned = version[0] >= DLPACK_MAJOR_VERSION};
  int cpu = there.device_type == kDLCPU && there.device_id == 0;
  int own = there.device_type == here.device_type && there.device_id == here.device_id;
  if (moves && !cpu && !own) {
    return PyErr_Format(PyExc_BufferError,
                        "cannot export to device %R: only the tensor's own device "
                        "(%d, %d) and the CPU (1, 0) are supported; use t.to_device()",
                        given[DL_DEVICE], here.device_type, here.device_id);
  }
  if (moves && !own && !dlw_is_host(here)) {
    return export_from_gpu(self, copy, options.versioned);
  }
  if (moves) options.device = &there; /* own, or the same memory by its usual name */
  if (copy == DLW_COPY_YES) return export_copy(tensor, options);
  return dlw_export_capsule(tensor, options);
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused)) {
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  DLDevice device = dlw_dl(tensor)->device;
  return Py_BuildValue("(ii)", device.device_type, device.device_id);
}

/* --- buffer protocol -------------------------------------------------------------- */

/* The memory of a copy on the CPU, where Python may wait for one. */
static int view_of_copy(PyObject *self, Py_buffer *view, int flags) {
  PyObject *host = read_blocking(self);
  if (host == NULL) {
    /* NumPy drops the exception raised here and calls __array__, which raises it again.
     */
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
      dlw_set(&as_tensor(self)->interrupt, Py_NewRef(PyErr_Occurred()));
    }
    return -1;
  }
  /* Writes to the copy would be lost. */
  as_tensor(host)->tensor->managed.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  int result = PyObject_GetBuffer(host, view, flags);
  Py_DECREF(host);
  return result;
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = NULL;
  dlw_set(&as_tensor(self)->interrupt, NULL);
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return -1;
  if (!dlw_is_host(dlw_dl(tensor)->device)) {
    if (!(flags & PyBUF_WRITABLE)) return view_of_copy(self, view, flags);
    return dlw_fail(PyExc_BufferError,
                    "a WebGPU tensor has no memory that Python can see; use await "
                    "t.to_host()");
  }
  if (dlw_export_buffer(tensor, self, view, flags) < 0) return -1;
  as_tensor(self)->views++;
  return 0;
}

static void tensor_releasebuffer(PyObject *self, Py_buffer *view) {
  as_tensor(self)->views--;
  dlw_release_buffer(view);
}

/* The class of an exception that NumPy may have dropped, once; None: there is none. */
static PyObject *tensor_interrupt(PyObject *self, PyObject *Py_UNUSED(unused)) {
  PyObject *interrupt = as_tensor(self)->interrupt;
  as_tensor(self)->interrupt = NULL;
  return interrupt != NULL ? interrupt : Py_NewRef(Py_None);
}

/* --- the type --------------------------------------------------------------------- */

static PyMethodDef TENSOR_METHODS[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack,
     METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, "
     "copy=None)\n--\n\n"
     "A DLPack capsule over the same memory, kept alive by the capsule.\n\n"
     "Versioned from max_version (1, 0) on, else legacy. copy=True exports a fresh\n"
     "copy. dl_device=(1, 0) reads a WebGPU tensor back where Python may block.\n"
     "Raises BufferError for a request that DLPack or the device cannot fulfil.\n\n"
     ">>> dlw.empty(3).__dlpack__(max_version=(1, 0))  # doctest: +ELLIPSIS\n"
     "<capsule object \"dltensor_versioned\" at ...>"},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n"
     "(device_type, device_id): (1, 0) for the CPU, (15, index) for WebGPU.\n\n"
     ">>> dlw.empty(3).__dlpack_device__()\n"
     "(1, 0)"},
    {"release", tensor_release, METH_NOARGS,
     "release($self, /)\n--\n\n"
     "Releases the memory now. Arrays and capsules made from this tensor keep it\n"
     "alive; the tensor itself raises ReleasedError from here on. May be called "
     "again.\n\n"
     ">>> t = dlw.empty(3)\n"
     ">>> t.release()\n"
     ">>> t\n"
     "Tensor(released)"},
    {"_interrupt", tensor_interrupt, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef TENSOR_MEMBERS[] = {
    {"_js", Py_T_OBJECT_EX, offsetof(tensor_object, js), 0, NULL},
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(tensor_object, weakrefs),
     Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot TENSOR_SLOTS[] = {
    {Py_tp_doc, "One hold on the memory of a DLPack tensor. See dlpack_web.Tensor."},
    {Py_tp_new, tensor_new},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_traverse, tensor_traverse},
    {Py_tp_finalize, tensor_finalize},
    {Py_tp_clear, tensor_clear},
    {Py_tp_getset, TENSOR_GETSET},
    {Py_tp_methods, TENSOR_METHODS},
    {Py_tp_members, TENSOR_MEMBERS},
    {Py_bf_getbuffer, tensor_getbuffer},
    {Py_bf_releasebuffer, tensor_releasebuffer},
    {0, NULL},
};

static PyType_Spec TENSOR_SPEC = {
    .name = "dlpack_web._core.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = TENSOR_SLOTS,
};

PyObject *dlw_tensor_type(PyObject *module) {
  if (base_type != NULL) return Py_NewRef((PyObject *)base_type);
  str_read_blocking = PyUnicode_InternFromString("_read_blocking");
  keywords[STREAM] = PyUnicode_InternFromString("stream");
  keywords[MAX_VERSION] = PyUnicode_InternFromString("max_version");
  keywords[DL_DEVICE] = PyUnicode_InternFromString("dl_device");
  keywords[COPY] = PyUnicode_InternFromString("copy");
  if (PyErr_Occurred()) return NULL;
  PyObject *type = PyType_FromModuleAndSpec(module, &TENSOR_SPEC, NULL);
  PyObject *exchange =
      dlw_exchange_api((dlw_exchange_type){dlw_tensor_of, dlw_tensor_object});
  if (type == NULL || exchange == NULL ||
      PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", exchange) < 0) {
    Py_CLEAR(type);
  }
  Py_XDECREF(exchange);
  if (type == NULL) return NULL;
  base_type = (PyTypeObject *)Py_NewRef(type);
  tensor_type = (PyTypeObject *)Py_NewRef(type);
  return type;
}
