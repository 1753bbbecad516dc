/* The module: its functions, its errors and its one state. */
#include <string.h>

#include "bridge.h"

dlw_state *dlw_core;

/* --- functions ------------------------------------------------------------------- */

/* What `explain` knows to import after all, copied when that was asked for. */
static dlw_tensor *explained(PyObject *x, int copy) {
  dlw_tensor *tensor = dlw_explain(x, 0);
  if (tensor == NULL || copy != DLW_COPY_YES) return tensor;
  dlw_tensor *fresh = dlw_copy(tensor);
  DLW_KEEP_EXCEPTION(dlw_tensor_release(tensor));
  return fresh;
}

static PyObject *import_object(PyObject *x, const DLDevice *device, int copy) {
  dlw_tensor *tensor;
  if (PyCapsule_CheckExact(x)) {
    tensor = dlw_import_capsule(x);
  } else if (Py_TYPE(x) == (PyTypeObject *)dlw_core->tensor_type && device == NULL &&
             copy != DLW_COPY_YES) {
    tensor = dlw_borrow(x); /* one more hold, without a capsule in between */
  } else {
    tensor = dlw_import_dlpack(x, device, copy);
    if (tensor == NULL && PyErr_ExceptionMatches(PyExc_BufferError)) {
      tensor = explained(x, copy);
    }
  }
  return dlw_tensor_object(tensor);
}

static PyObject *core_from_dlpack(PyObject *module, PyObject *const *args,
                                  Py_ssize_t nargs, PyObject *names) {
  (void)module;
  PyObject *device = Py_None, *copy_given = NULL;
  if (nargs != 1) {
    return dlw_fail("argument", "(n)", nargs);
  }
  Py_ssize_t count = names != NULL ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (dlw_is_name(name, dlw_core->str_device, "device")) {
      device = args[1 + i];
    } else if (dlw_is_name(name, dlw_core->str_copy, "copy")) {
      copy_given = args[1 + i];
    } else {
      return dlw_fail("keyword", "(sO)", "from_dlpack", name);
    }
  }
  int copy;
  if (dlw_parse_copy(copy_given, &copy) < 0) return NULL;
  if (device != Py_None) {
    return PyObject_CallFunctionObjArgs(dlw_core->place, args[0], device,
                                        copy_given ? copy_given : Py_None, NULL);
  }
  return import_object(args[0], NULL, copy);
}

static PyObject *core_from_dlpack_on(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *x, *copy_given;
  DLDevice device;
  int copy;
  if (!PyArg_ParseTuple(args, "O(ii)O", &x, &device.device_type, &device.device_id,
                        &copy_given) ||
      dlw_parse_copy(copy_given, &copy) < 0) {
    return NULL;
  }
  return import_object(x, &device, copy);
}

static PyObject *core_from_buffer(PyObject *module, PyObject *obj) {
  (void)module;
  if (!PyObject_CheckBuffer(obj)) {
    return dlw_fail("not_buffer", "(O)", Py_TYPE(obj));
  }
  dlw_tensor *tensor = dlw_import_buffer(obj);
  return dlw_tensor_object(tensor != NULL ? tensor : dlw_explain(obj, 1));
}

static uint64_t padded_flag(int padded) {
  return padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
}

static PyObject *core_empty(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *extents;
  unsigned int dtype;
  int padded;
  int64_t shape[DLW_MAX_NDIM];
  if (!PyArg_ParseTuple(args, "O!Ip", &PyTuple_Type, &extents, &dtype, &padded)) {
    return NULL;
  }
  Py_ssize_t ndim = PyTuple_Size(extents);
  for (Py_ssize_t i = 0; i < ndim && i < DLW_MAX_NDIM; i++) {
    shape[i] = PyLong_AsLongLong(PyTuple_GetItem(extents, i));
    if (shape[i] == -1 && PyErr_Occurred()) return NULL;
  }
  int32_t axes = ndim < INT32_MAX ? (int32_t)ndim : INT32_MAX;
  return dlw_tensor_object(
      dlw_empty(axes, shape, dlw_dtype_unpack(dtype), padded_flag(padded)));
}

/* _raw(tensor) -> (its memory as one axis of uint8, position of element 0 in bytes). */
static PyObject *core_raw(PyObject *module, PyObject *obj) {
  (void)module;
  dlw_tensor *tensor = dlw_tensor_of(obj), *raw = NULL;
  if (tensor == NULL) return NULL;
  int64_t offset = 0;
  dlw_raise(dlw_tensor_raw(tensor, &raw, &offset), dlw_dl(tensor));
  PyObject *object = dlw_tensor_object(raw);
  return object != NULL ? Py_BuildValue("(NL)", object, (long long)offset) : NULL;
}

/* _typed(buffer, dtype, padded): the buffer's memory with another dtype of its width.
 */
static PyObject *core_typed(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *obj;
  unsigned int packed;
  int padded;
  if (!PyArg_ParseTuple(args, "OIp", &obj, &packed, &padded)) return NULL;
  dlw_tensor *tensor = dlw_import_buffer(obj);
  if (tensor == NULL) return NULL;
  DLTensor *dl = dlw_dl(tensor);
  uint32_t width = dlw_itemsize(dl->dtype);
  dl->dtype = dlw_dtype_unpack(packed);
  tensor->managed.flags |= padded_flag(padded);
  dlw_status status = dlw_check(dl, tensor->managed.flags);
  uint32_t bits = dlw_element_bits(dl->dtype, tensor->managed.flags);
  if (status == DLW_OK && bits != width * 8) status = DLW_BAD_DTYPE;
  if (status == DLW_OK) return dlw_tensor_object(tensor);
  dlw_raise(status, dl);
  DLW_KEEP_EXCEPTION(dlw_tensor_release(tensor));
  return NULL;
}

static PyObject *core_live_tensors(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromLongLong(dlw_live_tensors());
}

static PyMethodDef METHODS[];

static PyObject *core_bind(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *type, *fail, *kind, *explain, *place, *docs;
  if (!PyArg_ParseTuple(args, "O!OOOOO!", &PyType_Type, &type, &fail, &kind, &explain,
                        &place, &PyDict_Type, &docs)) {
    return NULL;
  }
  dlw_set(&dlw_core->tensor_type, Py_NewRef(type));
  dlw_set(&dlw_core->fail, Py_NewRef(fail));
  dlw_set(&dlw_core->kind, Py_NewRef(kind));
  dlw_set(&dlw_core->explain, Py_NewRef(explain));
  dlw_set(&dlw_core->place, Py_NewRef(place));
  dlw_set(&dlw_core->docs, Py_NewRef(docs));
  dlw_document(METHODS, docs);
  dlw_document_tensor(docs);
  Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))core_from_dlpack,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"from_buffer", core_from_buffer, METH_O, NULL},
    {"live_tensors", core_live_tensors, METH_NOARGS, NULL},
    {"_from_dlpack_on", core_from_dlpack_on, METH_VARARGS, NULL},
    {"_empty", core_empty, METH_VARARGS, NULL},
    {"_raw", core_raw, METH_O, NULL},
    {"_typed", core_typed, METH_VARARGS, NULL},
    {"_bind", core_bind, METH_VARARGS, NULL},
    {"_take", dlw_bridge_take, METH_O, NULL},
    {"_raise", dlw_bridge_raise_pending, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- the module ------------------------------------------------------------------ */

static int add_names(dlw_state *state) {
  state->max_version =
      Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  state->str_dlpack = PyUnicode_InternFromString("__dlpack__");
  state->str_stream = PyUnicode_InternFromString("stream");
  state->str_max_version = PyUnicode_InternFromString("max_version");
  state->str_dl_device = PyUnicode_InternFromString("dl_device");
  state->str_copy = PyUnicode_InternFromString("copy");
  state->str_device = PyUnicode_InternFromString("device");
  state->str_exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  state->str_read_blocking = PyUnicode_InternFromString("_read_blocking");
  if (PyErr_Occurred()) return -1;
  state->names_version = PyTuple_Pack(1, state->str_max_version);
  state->names_all =
      PyTuple_Pack(3, state->str_max_version, state->str_dl_device, state->str_copy);
  return state->names_version && state->names_all ? 0 : -1;
}

static int module_exec(PyObject *module) {
  dlw_state *state = PyModule_GetState(module);
  if (dlw_core != NULL) {
    PyErr_SetString(PyExc_ImportError,
                    "dlpack_web._core can be loaded once per process; sub-interpreters "
                    "are not supported");
    return -1;
  }
  dlw_core = state;
  if (add_names(state) < 0) return -1;
  state->tensor_type = dlw_tensor_type(module);
  if (state->tensor_type == NULL) return -1;
  return PyModule_AddObjectRef(module, "Tensor", state->tensor_type);
}

static PyModuleDef_Slot MODULE_SLOTS[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
    {0, NULL},
};

/* No m_clear or m_free: deleters of capsules may still need the state when the module
 * is already gone, so it lives as long as the process (sys.modules keeps it anyway). */
static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dlpack_web._core",
    .m_doc = "The C core of dlpack_web: managed tensors, DLPack capsules, buffers.",
    .m_size = sizeof(dlw_state),
    .m_methods = METHODS,
    .m_slots = MODULE_SLOTS,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&MODULE); }
