#include "ndarray.h"

/* --- which NumPy ------------------------------------------------------------------ */

/* An attribute of a loaded module, a new reference; NULL if there is none, or it is
 * half loaded, or with an exception that must propagate: a lazy module loads now. */
static PyObject *find_in(const char *home, const char *attribute) {
  PyObject *name = PyUnicode_FromString(home);
  PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
  PyObject *found = module != NULL ? PyObject_GetAttrString(module, attribute) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(name);
  if (PyErr_Occurred() && !dlw_is_fatal()) PyErr_Clear();
  return found;
}

/* The check of import_array() in NumPy's headers: in the table of its C API, function 0
 * returns the version of the ABI, and pointer 2 is ndarray. */
static PyTypeObject *ndarray_in(const char *home) {
  PyObject *capsule = find_in(home, "_ARRAY_API");
  PyTypeObject *found = NULL;
  if (capsule != NULL && PyCapsule_IsValid(capsule, NULL)) {
    void **table = PyCapsule_GetPointer(capsule, NULL);
    unsigned abi = ((unsigned (*)(void))table[0])();
    if (abi == 0x1000009 || abi == 0x2000000) found = table[2];
  }
  Py_XDECREF(capsule);
  return found;
}

int dlw_is_ndarray(PyObject *obj) {
  /* Static types are never freed, so their addresses stay theirs. */
  static PyTypeObject *ndarray, *other;
  PyTypeObject *type = Py_TYPE(obj);
  if (type == ndarray) return 1;
  if (ndarray != NULL || type == other) return 0;
  if (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) return 0;
  ndarray = ndarray_in("numpy._core._multiarray_umath");
  if (ndarray == NULL && !PyErr_Occurred()) {
    ndarray = ndarray_in("numpy.core._multiarray_umath"); /* 1.x */
  }
  if (PyErr_Occurred()) return -1;
  if (type != ndarray) other = type;
  return type == ndarray;
}

/* --- its description -------------------------------------------------------------- */

/* By NumPy's type numbers, which are those of C's types up to 16, and 23 is a half. */
static DLDataType dtype_of(const dlw_npy_descr *descr) {
  enum { LONG = sizeof(long) * 8 };
  static const struct {
    uint8_t code, bits;
  } TYPES[] = {
      {kDLBool, 8},         {kDLInt, 8},   {kDLUInt, 8},     {kDLInt, 16},
      {kDLUInt, 16},        {kDLInt, 32},  {kDLUInt, 32},    {kDLInt, LONG},
      {kDLUInt, LONG},      {kDLInt, 64},  {kDLUInt, 64},    {kDLFloat, 32},
      {kDLFloat, 64},       {kDLFloat, 0}, {kDLComplex, 64}, {kDLComplex, 128},
      {kDLOpaqueHandle, 0},
  };
  int number = descr->type_num;
  if (descr->byteorder == '>') return (DLDataType){kDLOpaqueHandle, 0, 1};
  if (number == 23) return (DLDataType){kDLFloat, 16, 1};
  if (number < 0 || (size_t)number >= sizeof TYPES / sizeof TYPES[0]) number = 16;
  return (DLDataType){TYPES[number].code, TYPES[number].bits, 1};
}

int dlw_describe_ndarray(PyObject *obj, DLTensor *described, int64_t *shape,
                         int64_t *strides, uint64_t *flags) {
  const dlw_npy_array *array = (const dlw_npy_array *)obj;
  DLDataType dtype = dtype_of(array->descr);
  if (dtype.bits == 0 || array->nd > DLW_MAX_NDIM) return 0;
  Py_ssize_t itemsize = (Py_ssize_t)dlw_itemsize(dtype); /* a power of two */
  for (int i = 0; i < array->nd; i++) {
    shape[i] = array->dimensions[i];
    if ((array->strides[i] & (itemsize - 1)) != 0) return 0;
    strides[i] = array->strides[i] / itemsize;
  }
  *described = (DLTensor){.data = array->data,
                          .device = {kDLCPU, 0},
                          .ndim = array->nd,
                          .dtype = dtype,
                          .shape = shape,
                          .strides = strides};
  /* Arrays for which NumPy warns on writing: the write may not go where it seems. */
  unsigned writeable = 0x400, warn_on_write = 0x80000000;
  int writes = ((unsigned)array->flags & (writeable | warn_on_write)) == writeable;
  *flags = writes ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
  return 1;
}

/* --- masked arrays ---------------------------------------------------------------- */

/* NumPy loads numpy.ma late: until then there are none. Borrowed; NULL as find_in. */
static PyTypeObject *masked_array(void) {
  static PyObject *class;
  if (class != NULL) return (PyTypeObject *)class;
  PyObject *found = find_in("numpy.ma", "MaskedArray");
  if (found != NULL && PyType_Check(found)) {
    class = found;
  } else {
    Py_XDECREF(found);
  }
  return (PyTypeObject *)class;
}

/* Of structured elements those with any masked field; -1 with an exception. */
static long long count_masked(PyObject *array) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *mask = numpy != NULL ? PyObject_GetAttrString(array, "mask") : NULL;
  PyObject *count =
      mask != NULL ? PyObject_CallMethod(numpy, "count_nonzero", "O", mask) : NULL;
  long long masked = count != NULL ? PyLong_AsLongLong(count) : -1;
  Py_XDECREF(count);
  Py_XDECREF(mask);
  Py_XDECREF(numpy);
  return masked;
}

int dlw_check_mask(PyObject *obj) {
  PyTypeObject *type = Py_TYPE(obj), *class;
  if (!(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE)) return 0;
  class = masked_array();
  if (class == NULL) return PyErr_Occurred() ? -1 : 0;
  if (!PyType_IsSubtype(type, class)) return 0;
  long long masked = count_masked(obj);
  if (masked <= 0) return (int)masked;
  return dlw_fail(PyExc_BufferError,
                  "%lld elements of the %R are masked, and a Tensor has no mask: use "
                  "x.filled(value), or x.data, which has the masked elements, too",
                  masked, type);
}
