/* The module: its functions and its start. */
#include "functions.h"
#include "ndarray.h"

/* --- from other producers --------------------------------------------------------- */

static PyObject *place; /* place(x, device, copy, dtype) -> Tensor */

enum { DEVICE, COPY, DTYPE, KEYWORDS };
static PyObject *keywords[KEYWORDS]; /* "device", ... */

static PyObject *core_from_dlpack(PyObject *Py_UNUSED(module), PyObject *const *args,
                                  Py_ssize_t nargs, PyObject *names) {
  if (nargs != 1) {
    return PyErr_Format(
        PyExc_TypeError,
        "from_dlpack() takes exactly one positional argument (%zd given); others are "
        "keywords, such as device=",
        nargs);
  }
  PyObject *given[KEYWORDS] = {Py_None, Py_None, Py_None};
  if (dlw_parse_keywords("from_dlpack", args + 1, names, keywords, KEYWORDS, given) <
      0) {
    return NULL;
  }
  dlw_request request = DLW_ANY;
  if (dlw_parse_copy(given[COPY], &request.copy) < 0) return NULL;
  if (given[DEVICE] != Py_None || given[DTYPE] != Py_None) {
    return PyObject_CallFunctionObjArgs(place, args[0], given[DEVICE], given[COPY],
                                        given[DTYPE], NULL);
  }
  return dlw_tensor_object(dlw_consume(args[0], &request));
}

static PyObject *core_from_dlpack_on(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *x, *on, *copy;
  DLDevice device;
  dlw_request request = DLW_ANY;
  if (!PyArg_ParseTuple(args, "OOOp", &x, &on, &copy, &request.any_alignment) ||
      dlw_parse_copy(copy, &request.copy) < 0) {
    return NULL;
  }
  if (on != Py_None) {
    if (!PyTuple_Check(on)) {
      return PyErr_Format(PyExc_TypeError, "device must be None or a tuple, not %R",
                          on);
    }
    if (!PyArg_ParseTuple(on, "ii", &device.device_type, &device.device_id)) {
      return NULL;
    }
    request.device = &device;
  }
  return dlw_tensor_object(dlw_consume(x, &request));
}

static PyObject *core_from_buffer(PyObject *Py_UNUSED(module), PyObject *obj) {
  return dlw_tensor_object(dlw_borrow_buffer(obj));
}

static PyObject *core_check_mask(PyObject *Py_UNUSED(module), PyObject *obj) {
  if (dlw_check_mask(obj) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *core_hold(PyObject *Py_UNUSED(module), PyObject *obj) {
  dlw_request request = {.copy = DLW_COPY_IF_NEEDED, .any_alignment = 1};
  return dlw_tensor_object(dlw_borrow(obj, &request));
}

/* --- fresh memory, views ---------------------------------------------------------- */

static uint64_t padded_flag(int padded) {
  return padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
}

static PyObject *core_empty(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *extents;
  unsigned int dtype;
  int padded;
  int64_t shape[DLW_MAX_NDIM];
  if (!PyArg_ParseTuple(args, "O!Ip", &PyTuple_Type, &extents, &dtype, &padded)) {
    return NULL;
  }
  int32_t ndim = dlw_parse_dims(extents, shape);
  if (ndim < 0) return NULL;
  return dlw_tensor_object(
      dlw_empty(ndim, shape, dlw_dtype_unpack(dtype), padded_flag(padded)));
}

static PyObject *core_view(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *obj, *extents, *steps;
  long long offset;
  int64_t shape[DLW_MAX_NDIM], strides[DLW_MAX_NDIM];
  if (!PyArg_ParseTuple(args, "OO!O!L", &obj, &PyTuple_Type, &extents, &PyTuple_Type,
                        &steps, &offset)) {
    return NULL;
  }
  int32_t ndim = dlw_parse_dims(extents, shape);
  if (ndim < 0) return NULL;
  int32_t count = dlw_parse_dims(steps, strides);
  if (count < 0) return NULL;
  if (count != ndim) {
    return PyErr_Format(PyExc_ValueError, "%d extents and %d strides", (int)ndim,
                        (int)count);
  }
  /* Only now: an __index__ of theirs may release it. */
  dlw_tensor *tensor = dlw_tensor_of(obj), *view;
  if (tensor == NULL) return NULL;
  dlw_status status = dlw_tensor_view(tensor, ndim, shape, strides, offset, &view);
  if (status == DLW_OK) return dlw_tensor_object(view);
  DLTensor wanted = {.ndim = ndim, .dtype = dlw_dl(tensor)->dtype};
  return dlw_raise(status, &wanted);
}

static PyObject *core_retyped(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *obj, *extents;
  unsigned int packed;
  int64_t shape[DLW_MAX_NDIM];
  if (!PyArg_ParseTuple(args, "OO!I", &obj, &PyTuple_Type, &extents, &packed)) {
    return NULL;
  }
  int32_t ndim = dlw_parse_dims(extents, shape);
  if (ndim < 0) return NULL;
  /* Only now: an __index__ of theirs may release it. */
  dlw_tensor *tensor = dlw_tensor_of(obj), *view;
  if (tensor == NULL) return NULL;
  DLDataType dtype = dlw_dtype_unpack(packed);
  dlw_status status = dlw_tensor_retype(tensor, ndim, shape, dtype, &view);
  if (status == DLW_OK) return dlw_tensor_object(view);
  DLTensor wanted = *dlw_dl(tensor);
  wanted.ndim = ndim, wanted.dtype = dtype;
  return dlw_raise(status, &wanted);
}

static PyObject *core_raw(PyObject *Py_UNUSED(module), PyObject *obj) {
  dlw_tensor *tensor = dlw_tensor_of(obj), *raw;
  if (tensor == NULL) return NULL;
  int64_t offset;
  dlw_status status = dlw_tensor_raw(tensor, &raw, &offset);
  if (status != DLW_OK) return dlw_raise(status, dlw_dl(tensor));
  PyObject *object = dlw_tensor_object(raw);
  return object != NULL ? Py_BuildValue("(NL)", object, (long long)offset) : NULL;
}

/* Contiguous bytes, as of a file, may be elements of any width that divides them.
 * Whether these are such bytes; their shape then counts elements. */
static int join_bytes(DLTensor *dl, uint32_t width, uint32_t bits) {
  if (width != 1 || bits <= 8 || bits % 8 != 0 || dl->ndim != 1) return 0;
  if (dl->shape[0] % (bits / 8) != 0 || dl->strides[0] != 1) return 0;
  dl->shape[0] /= bits / 8;
  return 1;
}

/* Another dtype of the same width, or of contiguous bytes. None if bytes are misaligned
 * as elements. */
static PyObject *core_typed(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *obj;
  unsigned int packed;
  int padded;
  if (!PyArg_ParseTuple(args, "OIp", &obj, &packed, &padded)) return NULL;
  dlw_request request = {.copy = DLW_COPY_IF_NEEDED, .any_alignment = 1};
  dlw_tensor *tensor = dlw_import_buffer(obj, &request);
  if (tensor == NULL) return NULL;
  DLTensor *dl = dlw_dl(tensor);
  uint32_t width = dlw_itemsize(dl->dtype);
  dl->dtype = dlw_dtype_unpack(packed);
  tensor->managed.flags |= padded_flag(padded);
  uint32_t bits = dlw_element_bits(dl->dtype, tensor->managed.flags);
  int joined = join_bytes(dl, width, bits);
  if (joined) width = bits / 8;
  /* Not before: as many elements the bytes would exceed the heap. */
  dlw_status status = dlw_check(dl, tensor->managed.flags);
  if (status == DLW_OK && bits != width * 8) status = DLW_BAD_DTYPE;
  int aligned = dlw_is_aligned(dl);
  if (status == DLW_OK && aligned) return dlw_tensor_object(tensor);
  if (status == DLW_OK && !joined) status = DLW_MISALIGNED;
  if (status != DLW_OK) dlw_raise(status, dl);
  dlw_release_quietly(tensor);
  if (status != DLW_OK) return NULL;
  Py_RETURN_NONE;
}

static PyObject *core_convert(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *obj;
  unsigned int packed;
  int padded;
  if (!PyArg_ParseTuple(args, "OIp", &obj, &packed, &padded)) return NULL;
  dlw_tensor *tensor = dlw_tensor_of(obj), *converted;
  if (tensor == NULL) return NULL;
  DLDataType dtype = dlw_dtype_unpack(packed);
  dlw_misfit misfit = {0, 0};
  dlw_status status =
      dlw_tensor_convert(tensor, dtype, padded_flag(padded), &converted, &misfit);
  if (status == DLW_OK) return dlw_tensor_object(converted);
  if (status == DLW_NO_CONVERSION || status == DLW_MISFIT) {
    return dlw_raise_conversion(status, dlw_dl(tensor)->dtype, dtype, misfit);
  }
  DLTensor wanted = *dlw_dl(tensor);
  wanted.dtype = dtype;
  return dlw_raise(status, &wanted);
}

/* --- facts ------------------------------------------------------------------------ */

static PyObject *core_live_tensors(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(unused)) {
  return PyLong_FromLongLong(dlw_live_tensors());
}

/* For tensors that the library keeps for itself. */
static PyObject *core_uncount(PyObject *Py_UNUSED(module), PyObject *obj) {
  dlw_tensor *tensor = dlw_tensor_of(obj);
  if (tensor == NULL) return NULL;
  dlw_uncount(tensor);
  Py_RETURN_NONE;
}

static PyObject *str_get_referrers; /* a permanent one: CPython caches methods by it */

static PyObject *core_alive(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
  return dlw_tensors_alive();
}

/* gc.get_referrers(x) with types in place of tuples and frozensets. Another thread may
 * be constructing those, and fails if it finds an extra reference; no thread runs
 * between the two steps here. */
static PyObject *core_referrers(PyObject *Py_UNUSED(module), PyObject *x) {
  PyObject *gc = PyImport_ImportModule("gc");
  PyObject *found =
      gc != NULL ? PyObject_CallMethodObjArgs(gc, str_get_referrers, x, NULL) : NULL;
  Py_XDECREF(gc);
  for (Py_ssize_t i = 0; found != NULL && i < PyList_Size(found); i++) {
    PyObject *each = PyList_GetItem(found, i);
    if (!PyTuple_CheckExact(each) && !PyFrozenSet_CheckExact(each)) continue;
    if (PyList_SetItem(found, i, Py_NewRef((PyObject *)Py_TYPE(each))) < 0) {
      Py_CLEAR(found);
    }
  }
  return found;
}

static int add_dtype(PyObject *dict, DLDataType dtype) {
  char name[DLW_DTYPE_NAME];
  PyObject *packed = PyLong_FromUnsignedLong(dlw_dtype_pack(dtype));
  int failed = packed == NULL ||
               PyDict_SetItemString(dict, dlw_dtype_name(dtype, name), packed) < 0;
  Py_XDECREF(packed);
  return failed ? -1 : 0;
}

static PyObject *core_dtypes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
  PyObject *dict = PyDict_New();
  for (int code = 0; dict != NULL && code < 256; code++) {
    for (int bits = 0; dict != NULL && bits < 256; bits++) {
      DLDataType dtype = {(uint8_t)code, (uint8_t)bits, 1};
      if (dlw_dtype_known(dtype) && add_dtype(dict, dtype) < 0) Py_CLEAR(dict);
    }
  }
  return dict;
}

/* --- the module ------------------------------------------------------------------- */

static PyObject *core_bind(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *tensor_class, *explain, *place_function;
  if (!PyArg_ParseTuple(args, "OOO", &tensor_class, &explain, &place_function) ||
      dlw_bind_tensor(tensor_class, explain) < 0) {
    return NULL;
  }
  dlw_set(&place, Py_NewRef(place_function));
  Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))core_from_dlpack,
     METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack($module, x, /, *, device=None, copy=None, dtype=None)\n--\n\n"
     "A Tensor over the memory of x, which is kept alive until the Tensor is\n"
     "released.\n\n"
     "Parameters\n----------\n"
     "x : array or DLPack capsule\n"
     "    An object with __dlpack__, or __dlpack_c_exchange_api__ on its type, which "
     "is "
     "used\n"
     "    if nothing else is given.\n"
     "device : str or Device, optional\n"
     "    'cpu', 'webgpu' or 'webgpu:1'. Default: where x is.\n"
     "copy : bool, optional\n"
     "    True: always fresh memory; False: never. Default: only if needed.\n"
     "dtype : str or dtype, optional\n"
     "    The dtype to convert to, as in `Tensor.to_device`.\n\n"
     "Returns\n-------\n"
     "Tensor\n"
     "    For you to release.\n\n"
     "Raises\n------\n"
     "BufferError\n"
     "    DLPack or this library cannot describe x.\n"
     "CopyError\n"
     "    A copy is needed, and `copy` is False.\n"
     "AttributeError\n"
     "    x has no __dlpack__. Exceptions of x.__dlpack__ propagate.\n\n"
     "Examples\n--------\n"
     ">>> a = np.arange(6.0)\n"
     ">>> t = dlw.from_dlpack(a)\n"
     ">>> np.shares_memory(t.numpy(), a)\n"
     "True"},
    {"from_buffer", core_from_buffer, METH_O,
     "from_buffer($module, obj, /)\n--\n\n"
     "A Tensor over the memory of obj, borrowed through the buffer protocol.\n\n"
     "Parameters\n----------\n"
     "obj : bytes, array.array, memoryview, ndarray, ...\n"
     "    Stays pinned until the Tensor and all that was made from it are gone.\n\n"
     "Returns\n-------\n"
     "Tensor\n"
     "    For you to release.\n\n"
     "Raises\n------\n"
     "BufferError\n"
     "    Its format, strides or alignment do not fit.\n"
     "TypeError\n"
     "    It has no buffer.\n\n"
     "Examples\n--------\n"
     ">>> dlw.from_buffer(b'abc')\n"
     "Tensor([97, 98, 99], shape=(3,), dtype='uint8', device='cpu', read_only)"},
    {"live_tensors", core_live_tensors, METH_NOARGS,
     "live_tensors($module, /)\n--\n\n"
     "Managed tensors made by this library and not yet released, exports included.\n\n"
     ">>> before = dlw.live_tensors()\n"
     ">>> with dlw.empty(3):\n"
     "...     dlw.live_tensors() - before\n"
     "1"},
    {"_from_dlpack_on", core_from_dlpack_on, METH_VARARGS, NULL},
    {"_hold", core_hold, METH_O, NULL},
    {"_check_mask", core_check_mask, METH_O, NULL},
    {"_empty", core_empty, METH_VARARGS, NULL},
    {"_view", core_view, METH_VARARGS, NULL},
    {"_retyped", core_retyped, METH_VARARGS, NULL},
    {"_raw", core_raw, METH_O, NULL},
    {"_typed", core_typed, METH_VARARGS, NULL},
    {"_convert", core_convert, METH_VARARGS, NULL},
    {"_uncount", core_uncount, METH_O, NULL},
    {"_alive", core_alive, METH_NOARGS, NULL},
    {"_referrers", core_referrers, METH_O, NULL},
    {"_dtypes", core_dtypes, METH_NOARGS, NULL},
    {"_bind", core_bind, METH_VARARGS, NULL},
    {"_take", dlw_bridge_take, METH_O, NULL},
    {"_arguments", dlw_bridge_arguments, METH_VARARGS, NULL},
    {"_from_arrow_array", dlw_from_arrow_array, METH_VARARGS, NULL},
    {"_from_arrow_stream", dlw_from_arrow_stream, METH_VARARGS, NULL},
    {"_to_arrow", dlw_to_arrow, METH_VARARGS, NULL},
    {"_run", dlw_bridge_run, METH_VARARGS, NULL},
    {"_again", (PyCFunction)(void (*)(void))dlw_bridge_again, METH_FASTCALL, NULL},
    {"_pass", dlw_bridge_pass, METH_VARARGS, NULL},
    {"_wait", dlw_bridge_wait, METH_O, NULL},
    {"_raise", dlw_bridge_raise_pending, METH_NOARGS, NULL},
#ifndef __EMSCRIPTEN__
    {"_wrap", dlw_desktop_wrap, METH_VARARGS, NULL},
    {"_gpu", dlw_desktop_gpu, METH_O, NULL},
    {"_on_gpu_drop", dlw_desktop_on_drop, METH_O, NULL},
    {"_chunk", dlw_desktop_chunk, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

/* All state is static: JavaScript calls without a module, and deleters run anywhere. So
 * a second import in the same interpreter gets the existing state, and importing in
 * other interpreters, whose objects must not mix with ours, fails. */
static int check_interpreter(void) {
  static int64_t first = -1;
  int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (first < 0) first = id;
  if (id == first) return 0;
  return dlw_fail(PyExc_ImportError,
                  "dlpack_web was loaded by another interpreter of this process, and "
                  "sub-interpreters are not supported: import it in the first one");
}

static int module_exec(PyObject *module) {
  if (check_interpreter() < 0) return -1;
  keywords[DEVICE] = PyUnicode_InternFromString("device");
  keywords[COPY] = PyUnicode_InternFromString("copy");
  keywords[DTYPE] = PyUnicode_InternFromString("dtype");
  str_get_referrers = PyUnicode_InternFromString("get_referrers");
  if (PyErr_Occurred()) return -1;
  if (dlw_errors_init(module) < 0 || dlw_import_init() < 0) return -1;
  PyObject *type = dlw_tensor_type(module);
  if (type == NULL) return -1;
  int result = PyModule_AddObjectRef(module, "Tensor", type);
  Py_DECREF(type);
  return result;
}

static PyModuleDef_Slot MODULE_SLOTS[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
    {0, NULL},
};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dlpack_web._core",
    .m_doc = "The C core of dlpack_web: managed tensors, DLPack capsules, buffers.",
    .m_methods = METHODS,
    .m_slots = MODULE_SLOTS,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&MODULE); }
