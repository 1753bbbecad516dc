/* The module: its functions, its errors and its one state. */
#include <string.h>

#include "core.h"

dlw_state *dlw_core;

/* --- functions ------------------------------------------------------------------- */

static PyObject *import_object(PyObject *x, const DLDevice *device, int copy) {
  dlw_tensor *tensor;
  if (PyCapsule_CheckExact(x)) {
    tensor = dlw_import_capsule(x);
  } else if (Py_TYPE(x) == (PyTypeObject *)dlw_core->tensor_type && device == NULL &&
             copy != DLW_COPY_YES) {
    tensor = dlw_import_any(x); /* one more hold, without a capsule in between */
  } else {
    tensor = dlw_import_dlpack(x, device, copy);
    if (tensor == NULL && PyErr_ExceptionMatches(PyExc_BufferError)) dlw_explain(x, 0);
  }
  return dlw_tensor_object(tensor);
}

static PyObject *core_from_dlpack(PyObject *module, PyObject *const *args,
                                  Py_ssize_t nargs, PyObject *names) {
  (void)module;
  PyObject *device = Py_None, *copy_given = NULL;
  if (nargs != 1) {
    PyErr_Format(PyExc_TypeError,
                 "from_dlpack() takes exactly one positional argument (%zd given)",
                 nargs);
    return NULL;
  }
  Py_ssize_t count = names != NULL ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (dlw_is_name(name, dlw_core->str_device, "device")) {
      device = args[1 + i];
    } else if (dlw_is_name(name, dlw_core->str_copy, "copy")) {
      copy_given = args[1 + i];
    } else {
      PyErr_Format(PyExc_TypeError,
                   "from_dlpack() got an unexpected keyword argument %R", name);
      return NULL;
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
    PyErr_Format(PyExc_TypeError,
                 "from_buffer() needs an object with the buffer protocol, not %R; for "
                 "one with __dlpack__ use from_dlpack()",
                 Py_TYPE(obj));
    return NULL;
  }
  dlw_tensor *tensor = dlw_import_buffer(obj);
  if (tensor == NULL) dlw_explain(obj, 1);
  return dlw_tensor_object(tensor);
}

static PyObject *core_empty(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *extents;
  const char *name;
  int64_t shape[DLW_MAX_NDIM];
  if (!PyArg_ParseTuple(args, "O!s", &PyTuple_Type, &extents, &name)) return NULL;
  const dlw_dtype *dtype = dlw_dtype_named(name);
  if (dtype == NULL) {
    PyErr_Format(
        PyExc_TypeError,
        "unknown dtype '%s': 'bool', 'int8' to 'int64', 'uint8' to 'uint64', "
        "'float16' to 'float64', 'complex64', 'complex128', 'bfloat16' and the "
        "8-bit floats of DLPack are supported",
        name);
    return NULL;
  }
  Py_ssize_t ndim = PyTuple_Size(extents);
  for (Py_ssize_t i = 0; i < ndim && i < DLW_MAX_NDIM; i++) {
    int overflow;
    shape[i] = PyLong_AsLongLongAndOverflow(PyTuple_GetItem(extents, i), &overflow);
    if (shape[i] == -1 && PyErr_Occurred()) return NULL;
    if (overflow > 0) shape[i] = INT64_MAX; /* as good: both are too large */
    if (shape[i] < 0) {
      PyErr_Format(PyExc_ValueError, "extents must not be negative: shape is %R",
                   extents);
      return NULL;
    }
  }
  int32_t axes = ndim < INT32_MAX ? (int32_t)ndim : INT32_MAX;
  return dlw_tensor_object(dlw_empty(axes, shape, dlw_dtype_triple(dtype)));
}

/* The same memory as unsigned integers of the same size, for dtypes that NumPy lacks.
 */
static PyObject *core_bits(PyObject *module, PyObject *obj) {
  (void)module;
  dlw_tensor *tensor = dlw_tensor_of(obj);
  dlw_tensor *share = tensor != NULL ? dlw_share(tensor) : NULL;
  if (share != NULL) dlw_dl(share)->dtype.code = kDLUInt;
  return dlw_tensor_object(share);
}

static PyObject *core_live_tensors(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromLongLong(dlw_live_tensors());
}

static PyObject *core_bind(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *type, *explain, *refuse, *place;
  if (!PyArg_ParseTuple(args, "O!OOO", &PyType_Type, &type, &explain, &refuse,
                        &place)) {
    return NULL;
  }
  dlw_set(&dlw_core->tensor_type, Py_NewRef(type));
  dlw_set(&dlw_core->explain, Py_NewRef(explain));
  dlw_set(&dlw_core->refuse, Py_NewRef(refuse));
  dlw_set(&dlw_core->place, Py_NewRef(place));
  Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))core_from_dlpack,
     METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\n"
     "A Tensor over the memory of x, which has __dlpack__ or is a DLPack capsule.\n\n"
     "device: None (where x is), 'cpu', 'webgpu', 'webgpu:1' or a Device.\n"
     "copy: None (only if needed), True (always fresh memory), False (CopyError if "
     "one\n"
     "would be needed). The result keeps the memory of x alive until it is released.\n"
     "Exceptions of x.__dlpack__ propagate; BufferError: DLPack or this library "
     "cannot\n"
     "describe x."},
    {"from_buffer", core_from_buffer, METH_O,
     "from_buffer($module, obj, /)\n--\n\n"
     "A Tensor over the memory of obj, borrowed through the buffer protocol (bytes,\n"
     "array.array, memoryview, ndarray). obj stays pinned until the Tensor and all "
     "that\n"
     "was made from it are gone. BufferError: format, strides or alignment do not "
     "fit."},
    {"live_tensors", core_live_tensors, METH_NOARGS,
     "live_tensors($module, /)\n--\n\n"
     "Managed tensors made by this library and not yet released, exports included."},
    {"_from_dlpack_on", core_from_dlpack_on, METH_VARARGS, NULL},
    {"_empty", core_empty, METH_VARARGS, NULL},
    {"_bits", core_bits, METH_O, NULL},
    {"_bind", core_bind, METH_VARARGS, NULL},
    {"_take", dlw_bridge_take, METH_O, NULL},
    {"_lend", dlw_bridge_lend, METH_O, NULL},
    {"_raise_pending", dlw_bridge_raise_pending, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- the module ------------------------------------------------------------------ */

static PyObject *add_error(PyObject *module, const char *name, const char *doc,
                           PyObject *bases) {
  char qualified[64] = "dlpack_web.";
  strncat(qualified, name, sizeof qualified - sizeof "dlpack_web.");
  PyObject *error = PyErr_NewExceptionWithDoc(qualified, doc, bases, NULL);
  if (error != NULL && PyModule_AddObjectRef(module, name, error) < 0) Py_CLEAR(error);
  return error;
}

static int add_errors(dlw_state *state, PyObject *module) {
  PyObject *bases = PyTuple_Pack(2, PyExc_BufferError, PyExc_ValueError);
  if (bases == NULL) return -1;
  state->copy_error =
      add_error(module, "CopyError",
                "A copy would be needed although copy=False was asked for.", bases);
  Py_DECREF(bases);
  state->device_lost_error =
      add_error(module, "DeviceLostError", "The tensor's WebGPU device was lost.",
                PyExc_BufferError);
  state->released_error =
      add_error(module, "ReleasedError", "The tensor was released.", PyExc_BufferError);
  return state->copy_error && state->device_lost_error && state->released_error ? 0
                                                                                : -1;
}

static int add_names(dlw_state *state) {
  state->max_version =
      Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  state->str_dlpack = PyUnicode_InternFromString("__dlpack__");
  state->str_stream = PyUnicode_InternFromString("stream");
  state->str_max_version = PyUnicode_InternFromString("max_version");
  state->str_dl_device = PyUnicode_InternFromString("dl_device");
  state->str_copy = PyUnicode_InternFromString("copy");
  state->str_device = PyUnicode_InternFromString("device");
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
  state->tensor_type = dlw_tensor_type(module);
  if (state->tensor_type == NULL) return -1;
  if (PyModule_AddObjectRef(module, "Tensor", state->tensor_type) < 0) return -1;
  return add_errors(state, module) < 0 ? -1 : add_names(state);
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
