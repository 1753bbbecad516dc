/* A consumer of __dlpack_c_exchange_api__ as a library written in C would be: compiled
 * against the official header, it knows nothing of dlpack_web but what a type says.
 * test_consumer.py builds and drives it. Managed tensors travel as ints in Python. */
#include <Python.h>
#include <dlpack/dlpack.h>
#include <pthread.h>
#include <string.h>

/* --- finding the functions ------------------------------------------------------- */

static const DLPackExchangeAPI *api_of(PyObject *obj) {
  PyObject *capsule =
      PyObject_GetAttrString((PyObject *)Py_TYPE(obj), "__dlpack_c_exchange_api__");
  if (capsule == NULL) return NULL;
  DLPackExchangeAPIHeader *header =
      PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (header == NULL) return NULL;
  while (header != NULL && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  if (header == NULL) PyErr_SetString(PyExc_ImportError, "another major version");
  return (const DLPackExchangeAPI *)header;
}

/* --- reading ---------------------------------------------------------------------- */

/* ((device type, id), (code, bits, lanes), shape, strides, sum of float32 elements) */
static PyObject *read_tensor(const DLTensor *tensor) {
  PyObject *shape = PyTuple_New(tensor->ndim), *strides = PyTuple_New(tensor->ndim);
  int64_t size = 1;
  for (int i = 0; i < tensor->ndim; i++) {
    PyTuple_SetItem(shape, i, PyLong_FromLongLong(tensor->shape[i]));
    PyTuple_SetItem(strides, i, PyLong_FromLongLong(tensor->strides[i]));
    size *= tensor->shape[i];
  }
  double sum = 0;
  for (int64_t n = 0; n < size; n++) {
    int64_t at = 0, rest = n;
    for (int i = tensor->ndim; i-- > 0; rest /= tensor->shape[i]) {
      at += rest % tensor->shape[i] * tensor->strides[i];
    }
    sum += ((float *)((char *)tensor->data + tensor->byte_offset))[at];
  }
  return Py_BuildValue("((ii)(iii)NNd)", tensor->device.device_type,
                       tensor->device.device_id, tensor->dtype.code, tensor->dtype.bits,
                       tensor->dtype.lanes, shape, strides, sum);
}

static PyObject *hold(PyObject *module, PyObject *obj) {
  (void)module;
  const DLPackExchangeAPI *api = api_of(obj);
  DLManagedTensorVersioned *managed;
  if (api == NULL || api->managed_tensor_from_py_object_no_sync(obj, &managed)) {
    return NULL;
  }
  return PyLong_FromVoidPtr(managed);
}

static PyObject *read_held(PyObject *module, PyObject *address) {
  (void)module;
  DLManagedTensorVersioned *managed = PyLong_AsVoidPtr(address);
  return Py_BuildValue("(N(II)K)", read_tensor(&managed->dl_tensor),
                       managed->version.major, managed->version.minor,
                       (unsigned long long)managed->flags);
}

/* --- letting go ------------------------------------------------------------------ */

static void *delete_it(void *managed) {
  DLManagedTensorVersioned *self = managed;
  self->deleter(self);
  return NULL;
}

/* drop(address, how): "gil", "released" (the GIL) or "thread", one that Python never
 * saw, while this one waits without the GIL. */
static PyObject *drop(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *address;
  const char *how;
  if (!PyArg_ParseTuple(args, "Os", &address, &how)) return NULL;
  void *managed = PyLong_AsVoidPtr(address);
  int failed = 0;
  if (strcmp(how, "gil") == 0) {
    delete_it(managed);
    Py_RETURN_NONE;
  }
  Py_BEGIN_ALLOW_THREADS;
  if (strcmp(how, "released") == 0) {
    delete_it(managed);
  } else {
    pthread_t thread;
    failed =
        pthread_create(&thread, NULL, delete_it, managed) || pthread_join(thread, NULL);
  }
  Py_END_ALLOW_THREADS;
  if (failed) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

/* What Python calls while an exception is pending, which is what this raises: the only
 * object of a list dies, or a deleter is called, given as (function, argument). */
static PyObject *drop_pending(PyObject *module, PyObject *what) {
  (void)module;
  if (PyList_Check(what)) {
    PyObject *last = Py_NewRef(PyList_GetItem(what, 0));
    if (PySequence_DelItem(what, 0) < 0) return NULL;
    PyErr_SetString(PyExc_KeyError, "pending");
    Py_DECREF(last);
    return NULL;
  }
  unsigned long long deleter, managed;
  if (!PyArg_ParseTuple(what, "KK", &deleter, &managed)) return NULL;
  PyErr_SetString(PyExc_KeyError, "pending");
  ((void (*)(void *))(uintptr_t)deleter)((void *)(uintptr_t)managed);
  return NULL;
}

static void *kept[8];
static int kept_count;

static void drop_kept(void) {
  printf("Python is %s, ", Py_IsInitialized() ? "there" : "gone");
  for (int i = 0; i < kept_count; i++) delete_it(kept[i]);
  printf("%d deleted\n", kept_count);
}

/* Drops up to eight managed tensors when the process exits, after Python. */
static PyObject *drop_at_exit(PyObject *module, PyObject *address) {
  (void)module;
  if (kept_count == 0) atexit(drop_kept);
  kept[kept_count++] = PyLong_AsVoidPtr(address);
  Py_RETURN_NONE;
}

/* --- handing back ---------------------------------------------------------------- */

/* give(like, address): a tensor of the library of `like`, which owns it from here on.
 */
static PyObject *give(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *like, *address;
  if (!PyArg_ParseTuple(args, "OO", &like, &address)) return NULL;
  const DLPackExchangeAPI *api = api_of(like);
  void *object;
  if (api == NULL ||
      api->managed_tensor_to_py_object_no_sync(PyLong_AsVoidPtr(address), &object)) {
    return NULL;
  }
  return object;
}

typedef struct {
  int calls;
  char kind[32], message[200];
} told;

/* Knows nothing of Python: it is called without the GIL. */
static void set_error(void *context, const char *kind, const char *message) {
  told *error = context;
  error->calls++;
  strncpy(error->kind, kind, sizeof error->kind - 1);
  strncpy(error->message, message, sizeof error->message - 1);
}

typedef struct {
  const DLPackExchangeAPI *api;
  DLTensor prototype;
  DLManagedTensorVersioned *made;
  told error;
  int status;
} request;

static void *allocate_it(void *context) {
  request *wanted = context;
  wanted->status = wanted->api->managed_tensor_allocator(
      &wanted->prototype, &wanted->made, &wanted->error, set_error);
  return NULL;
}

/* allocate(like, count, (code, bits, lanes), device type), by a thread of its own:
 * (address, (calls of set_error, kind, message)). Fills float32 with ones. */
static PyObject *allocate(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *like;
  long long count;
  unsigned char code, bits;
  unsigned short lanes;
  int device;
  if (!PyArg_ParseTuple(args, "OL(bbH)i", &like, &count, &code, &bits, &lanes,
                        &device)) {
    return NULL;
  }
  int64_t shape[] = {count};
  request wanted = {.api = api_of(like)};
  if (wanted.api == NULL) return NULL;
  wanted.prototype.ndim = 1;
  wanted.prototype.shape = shape;
  wanted.prototype.dtype = (DLDataType){code, bits, lanes};
  wanted.prototype.device.device_type = (DLDeviceType)device;
  pthread_t thread;
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed =
      pthread_create(&thread, NULL, allocate_it, &wanted) || pthread_join(thread, NULL);
  Py_END_ALLOW_THREADS;
  if (failed) return PyErr_SetFromErrno(PyExc_OSError);
  for (int64_t i = 0; wanted.status == 0 && i < count; i++) {
    ((float *)wanted.made->dl_tensor.data)[i] = 1;
  }
  PyObject *address =
      wanted.status == 0 ? PyLong_FromVoidPtr(wanted.made) : Py_NewRef(Py_None);
  return Py_BuildValue("(N(iss))", address, wanted.error.calls, wanted.error.kind,
                       wanted.error.message);
}

/* --- no memory for objects -------------------------------------------------------- */

static PyMemAllocatorEx usual;
static int allowed;

static void *allocate_few(void *context, size_t bytes) {
  return allowed-- > 0 ? usual.malloc(context, bytes) : NULL;
}

/* without_memory(function, args, count): calls it while only `count` more objects find
 * memory. */
static PyObject *without_memory(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *function, *given;
  if (!PyArg_ParseTuple(args, "OO!i", &function, &PyTuple_Type, &given, &allowed)) {
    return NULL;
  }
  PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &usual);
  PyMemAllocatorEx few = usual;
  few.malloc = allocate_few;
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &few);
  PyObject *result = PyObject_Call(function, given, NULL);
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &usual);
  return result;
}

/* --- the module ------------------------------------------------------------------ */

static PyMethodDef METHODS[] = {
    {"hold", hold, METH_O, NULL},
    {"read", read_held, METH_O, NULL},
    {"drop", drop, METH_VARARGS, NULL},
    {"drop_at_exit", drop_at_exit, METH_O, NULL},
    {"drop_pending", drop_pending, METH_O, NULL},
    {"give", give, METH_VARARGS, NULL},
    {"allocate", allocate, METH_VARARGS, NULL},
    {"without_memory", without_memory, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, .m_name = "exchange_consumer",
                             .m_methods = METHODS};

PyMODINIT_FUNC PyInit_exchange_consumer(void) { return PyModuleDef_Init(&MODULE); }
