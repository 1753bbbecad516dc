#include "object.h"

#include "export.h"

typedef struct {
  PyObject_HEAD;
  dlw_tensor *tensor; /* our hold; NULL once released */
  PyObject *js;       /* the JavaScript twin, kept by Python code */
  PyObject *weakrefs;
} tensor_object;

/* --- between objects and tensors ------------------------------------------------- */

int dlw_is_tensor(PyObject *obj) {
  return PyObject_TypeCheck(obj, (PyTypeObject *)dlw_core->tensor_type);
}

static dlw_tensor *held(PyObject *self) {
  dlw_tensor *tensor = ((tensor_object *)self)->tensor;
  if (tensor == NULL) {
    return dlw_fail("released", "()");
  }
  return tensor;
}

dlw_tensor *dlw_tensor_of(PyObject *obj) {
  return dlw_is_tensor(obj) ? held(obj) : dlw_fail("not_tensor", "(O)", Py_TYPE(obj));
}

PyObject *dlw_tensor_object(dlw_tensor *tensor) {
  if (tensor == NULL) return NULL;
  PyTypeObject *type = (PyTypeObject *)dlw_core->tensor_type;
  allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  PyObject *self = alloc(type, 0);
  if (self == NULL) {
    DLW_KEEP_EXCEPTION(dlw_tensor_release(tensor));
    return NULL;
  }
  ((tensor_object *)self)->tensor = tensor;
  return self;
}

dlw_tensor *dlw_explain(PyObject *obj, int borrowing) {
  PyObject *raised = PyErr_GetRaisedException();
  PyObject *better = PyObject_CallFunctionObjArgs(dlw_core->explain, obj, raised,
                                                  borrowing ? Py_True : Py_False, NULL);
  if (better == NULL) { /* never hide the first error behind ours */
    PyErr_Clear();
    PyErr_SetRaisedException(raised);
    return NULL;
  }
  Py_DECREF(raised);
  if (!dlw_is_tensor(better)) {
    PyErr_SetRaisedException(better);
    return NULL;
  }
  dlw_tensor *tensor = dlw_tensor_of(better);
  dlw_tensor *share = tensor != NULL ? dlw_share(tensor) : NULL;
  Py_DECREF(better);
  return share;
}

dlw_tensor *dlw_borrow(PyObject *obj) {
  if (dlw_is_tensor(obj)) {
    dlw_tensor *tensor = dlw_tensor_of(obj);
    return tensor != NULL ? dlw_share(tensor) : NULL;
  }
  dlw_tensor *tensor = dlw_import_any(obj);
  if (tensor == NULL && !PyErr_ExceptionMatches(PyExc_TypeError)) {
    return dlw_explain(obj, 1);
  }
  return tensor;
}

static void let_go(PyObject *self) {
  dlw_tensor *tensor = ((tensor_object *)self)->tensor;
  ((tensor_object *)self)->tensor = NULL;
  if (tensor != NULL) DLW_KEEP_EXCEPTION(dlw_tensor_release(tensor));
  if (((tensor_object *)self)->js != NULL) {
    DLW_KEEP_EXCEPTION(Py_CLEAR(((tensor_object *)self)->js));
  }
}

static void tensor_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  if (((tensor_object *)self)->weakrefs != NULL) PyObject_ClearWeakRefs(self);
  let_go(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args, (void)kwargs;
  return dlw_fail("new", "(O)", type);
}

/* --- attributes ------------------------------------------------------------------ */

static PyObject *int64_tuple(const int64_t *values, int32_t count) {
  PyObject *tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != NULL && i < count; i++) {
    PyObject *value = PyLong_FromLongLong(values[i]);
    if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

enum { SHAPE, STRIDES, BYTE_OFFSET, DTYPE, OWNER, PADDED, READ_ONLY, RELEASED };

static PyObject *tensor_get(PyObject *self, void *what) {
  if ((intptr_t)what == RELEASED) {
    return PyBool_FromLong(((tensor_object *)self)->tensor == NULL);
  }
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  DLTensor *dl = dlw_dl(tensor);
  switch ((intptr_t)what) {
    case SHAPE:
      return int64_tuple(dl->shape, dl->ndim);
    case STRIDES:
      return int64_tuple(dl->strides, dl->ndim);
    case BYTE_OFFSET:
      return PyLong_FromUnsignedLongLong(dl->byte_offset);
    case DTYPE:
      return PyLong_FromUnsignedLong(dlw_dtype_pack(dl->dtype));
    case PADDED:
      return PyBool_FromLong(
          (tensor->managed.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0);
    case OWNER:
      return dlw_owner(tensor);
    default:
      return PyBool_FromLong(dlw_read_only(tensor));
  }
}

#define GET(name, what) {name, tensor_get, NULL, NULL, (void *)(intptr_t)(what)}
static PyGetSetDef TENSOR_GETSET[] = {
    GET("shape", SHAPE),
    GET("strides", STRIDES),
    GET("byte_offset", BYTE_OFFSET),
    GET("_dtype", DTYPE),
    GET("_owner", OWNER),
    GET("padded", PADDED),
    GET("read_only", READ_ONLY),
    GET("released", RELEASED),
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- arguments ------------------------------------------------------------------- */

int dlw_is_name(PyObject *name, PyObject *expected, const char *text) {
  return name == expected || PyUnicode_CompareWithASCIIString(name, text) == 0;
}

int dlw_parse_copy(PyObject *value, int *copy) {
  if (value == NULL || value == Py_None) {
    *copy = DLW_COPY_IF_NEEDED;
  } else if (value == Py_True || value == Py_False) {
    *copy = value == Py_True ? DLW_COPY_YES : DLW_COPY_NO;
  } else {
    dlw_fail("copy", "(O)", value);
    return -1;
  }
  return 0;
}

/* A pair of ints, as max_version and dl_device are; 1 when it was given, 0 when not. */
static int parse_pair(PyObject *value, const char *what, long pair[2]) {
  if (value == NULL || value == Py_None) return 0;
  if (PyTuple_Check(value) && PyTuple_Size(value) == 2) {
    for (int i = 0; i < 2; i++) {
      pair[i] = PyLong_AsLong(PyTuple_GetItem(value, i));
      if (pair[i] == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
        goto wrong;
      }
    }
    return 1;
  }
wrong:
  dlw_fail("pair", "(sO)", what, value);
  return -1;
}

/* --- __dlpack__ ------------------------------------------------------------------ */

typedef struct {
  PyObject *stream, *max_version, *dl_device, *copy; /* borrowed; NULL: not given */
} dlpack_arguments;

static int parse_dlpack(PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                        dlpack_arguments *out) {
  if (nargs != 0) {
    dlw_fail("keywords", "()");
    return -1;
  }
  Py_ssize_t count = names != NULL ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (dlw_is_name(name, dlw_core->str_max_version, "max_version")) {
      out->max_version = args[i];
    } else if (dlw_is_name(name, dlw_core->str_dl_device, "dl_device")) {
      out->dl_device = args[i];
    } else if (dlw_is_name(name, dlw_core->str_copy, "copy")) {
      out->copy = args[i];
    } else if (dlw_is_name(name, dlw_core->str_stream, "stream")) {
      out->stream = args[i];
    } else {
      dlw_fail("keyword", "(sO)", "__dlpack__", name);
      return -1;
    }
  }
  return 0;
}

/* Reads the tensor back and exports the copy; only Python knows whether it may block.
 */
static PyObject *export_from_gpu(PyObject *self, int copy, int versioned) {
  if (copy == DLW_COPY_NO) {
    return dlw_fail("readback", "()");
  }
  PyObject *host = PyObject_CallMethodObjArgs(self, dlw_core->str_read_blocking, NULL);
  if (host == NULL) return NULL;
  dlw_tensor *tensor = dlw_tensor_of(host);
  PyObject *capsule = tensor != NULL ? dlw_export(tensor, versioned, 1) : NULL;
  Py_DECREF(host);
  return capsule;
}

static PyObject *export_copy(dlw_tensor *tensor, int versioned) {
  if (dlw_dl(tensor)->device.device_type != kDLCPU) {
    return dlw_fail("gpu_copy", "()");
  }
  dlw_tensor *fresh = dlw_copy(tensor);
  if (fresh == NULL) return NULL;
  PyObject *capsule = dlw_export(fresh, versioned, 1);
  DLW_KEEP_EXCEPTION(dlw_tensor_release(fresh));
  return capsule;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *names) {
  dlpack_arguments given = {0};
  long version[2] = {0, 0}, device[2] = {0, 0};
  int copy;
  if (parse_dlpack(args, nargs, names, &given) < 0) return NULL;
  if (given.stream != NULL && given.stream != Py_None) {
    return dlw_fail("stream", "(O)", given.stream);
  }
  if (dlw_parse_copy(given.copy, &copy) < 0) return NULL;
  if (parse_pair(given.max_version, "max_version", version) < 0) return NULL;
  int moves = parse_pair(given.dl_device, "dl_device", device);
  if (moves < 0) return NULL;
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  DLDevice here = dlw_dl(tensor)->device;
  int versioned = version[0] >= DLPACK_MAJOR_VERSION;
  if (moves && (device[0] != here.device_type || device[1] != here.device_id)) {
    if (here.device_type != kDLCPU && device[0] == kDLCPU && device[1] == 0) {
      return export_from_gpu(self, copy, versioned);
    }
    return dlw_fail("device", "(O(ii))", given.dl_device, here.device_type,
                    here.device_id);
  }
  if (copy == DLW_COPY_YES) return export_copy(tensor, versioned);
  return dlw_export(tensor, versioned, 0);
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return NULL;
  DLDevice device = dlw_dl(tensor)->device;
  return Py_BuildValue("(ii)", device.device_type, device.device_id);
}

/* --- lifetime -------------------------------------------------------------------- */

static PyObject *tensor_release(PyObject *self, PyObject *unused) {
  (void)unused;
  let_go(self);
  Py_RETURN_NONE;
}

static PyMethodDef TENSOR_METHODS[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, NULL},
    {"release", tensor_release, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- buffer protocol ------------------------------------------------------------- */

/* The memory of a copy on the CPU, where Python may wait for one. */
static int view_of_copy(PyObject *self, Py_buffer *view, int flags) {
  PyObject *host = PyObject_CallMethodObjArgs(self, dlw_core->str_read_blocking, NULL);
  if (host == NULL) {
    /* NumPy drops what is raised here and goes on: there an interrupt comes again. */
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    return -1;
  }
  /* What is written there would be lost. */
  dlw_tensor_of(host)->managed.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  int result = PyObject_GetBuffer(host, view, flags);
  Py_DECREF(host);
  return result;
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = NULL;
  dlw_tensor *tensor = held(self);
  if (tensor == NULL) return -1;
  DLTensor *dl = dlw_dl(tensor);
  const char *format = dlw_dtype_format(dl->dtype);
  if (dl->device.device_type != kDLCPU && !(flags & PyBUF_WRITABLE)) {
    return view_of_copy(self, view, flags);
  }
  const char *wrong = dl->device.device_type != kDLCPU                    ? "gpu_view"
                      : format == NULL                                    ? "no_format"
                      : (flags & PyBUF_WRITABLE) && dlw_read_only(tensor) ? "read_only"
                                                                          : NULL;
  if (wrong != NULL) {
    dlw_fail(wrong, "(k)", (unsigned long)dlw_dtype_pack(dl->dtype));
    return -1;
  }
  size_t axes = (size_t)dl->ndim;
  /* A hold of its own: the view outlives release(). Py_ssize_t is narrower on wasm32.
   */
  dlw_tensor *share = dlw_tensor_share(tensor, 2 * axes * sizeof(Py_ssize_t));
  if (share == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  Py_ssize_t *dims = dlw_payload(share);
  Py_ssize_t itemsize = (Py_ssize_t)dlw_itemsize(dl->dtype);
  for (size_t i = 0; i < axes; i++) {
    dims[i] = (Py_ssize_t)dl->shape[i];
    dims[axes + i] = (Py_ssize_t)dl->strides[i] * itemsize;
  }
  *view = (Py_buffer){.buf = dl->data != NULL ? dlw_first(dl) : (char *)share,
                      .len = (Py_ssize_t)dlw_nbytes(tensor),
                      .itemsize = itemsize,
                      .readonly = dlw_read_only(tensor),
                      .ndim = dl->ndim,
                      .format = (char *)format,
                      .shape = dims,
                      .strides = dims + axes,
                      .internal = share};
  char order = (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS ? 'A'
               : (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS   ? 'F'
               : (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS   ? 'C'
               : (flags & PyBUF_STRIDES) == PyBUF_STRIDES             ? 0
                                                                      : 'C';
  if (order != 0 && !PyBuffer_IsContiguous(view, order)) {
    dlw_tensor_release(share);
    dlw_fail("strided", "()");
    return -1;
  }
  if (!(flags & PyBUF_FORMAT)) view->format = NULL;
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
  if ((flags & PyBUF_ND) != PyBUF_ND) view->shape = NULL;
  view->obj = Py_NewRef(self);
  return 0;
}

static void tensor_releasebuffer(PyObject *self, Py_buffer *view) {
  (void)self;
  DLW_KEEP_EXCEPTION(dlw_tensor_release(view->internal));
}

/* --- the type -------------------------------------------------------------------- */

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
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = TENSOR_SLOTS,
};

static const char *doc_of(PyObject *docs, const char *name) {
  PyObject *text = PyDict_GetItemString(docs, name);
  return text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
}

void dlw_document(PyMethodDef *methods, PyObject *docs) {
  for (; methods->ml_name != NULL; methods++) {
    methods->ml_doc = doc_of(docs, methods->ml_name);
  }
}

void dlw_document_tensor(PyObject *docs) {
  dlw_document(TENSOR_METHODS, docs);
  for (PyGetSetDef *getter = TENSOR_GETSET; getter->name != NULL; getter++) {
    getter->doc = doc_of(docs, getter->name);
  }
}

PyObject *dlw_tensor_type(PyObject *module) {
  PyObject *type = PyType_FromModuleAndSpec(module, &TENSOR_SPEC, NULL);
  PyObject *exchange =
      dlw_exchange_api((dlw_exchange_type){dlw_tensor_of, dlw_tensor_object});
  if (type == NULL || exchange == NULL ||
      PyObject_SetAttr(type, dlw_core->str_exchange, exchange) < 0) {
    Py_CLEAR(type);
  }
  Py_XDECREF(exchange);
  return type;
}
