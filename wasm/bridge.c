/* The functions that JavaScript calls directly, by name (js/src/pyodide/host.ts), and
 * Python's for JavaScript. On failure those of JavaScript return 0 and keep the Python
 * exception until JavaScript raises it. */
#include <string.h>

#include "functions.h"
#include "handles.h"
#include "ndarray.h"
#include "upload.h"

#ifdef __EMSCRIPTEN__
#define DLW_EXPORT(name) __attribute__((export_name(#name), used))
#else /* the same names, for tests through ctypes */
#define DLW_EXPORT(name) __attribute__((visibility("default")))
#endif

/* --- errors ----------------------------------------------------------------------- */

static PyObject *pending, *pending_text;

/* Hands a hold to JavaScript. NULL, or a hold that finds no slot, which is released:
 * keeps the exception. */
static dlw_tensor *lend(dlw_tensor *tensor) {
  if (tensor != NULL && dlw_handle_add(tensor) == 0) return tensor;
  if (tensor != NULL) {
    dlw_release_quietly(tensor);
    PyErr_NoMemory();
  }
  dlw_set(&pending, dlw_put_aside());
  return NULL;
}

static void *raise_stale(uint32_t handle) {
  return (void *)PyErr_Format(dlw_ReleasedError,
                              "handle %u is stale or was never given out: the tensor "
                              "was released",
                              handle);
}

/* The tensor of a handle, with the exception for a stale one. */
static dlw_tensor *expect(uint32_t handle) {
  dlw_tensor *tensor = dlw_handle_get(handle);
  return tensor != NULL ? tensor : raise_stale(handle);
}

enum { NONE, OTHER, UNSUPPORTED, RELEASED, COPY_NEEDED, DEVICE_LOST, NO_MEMORY };

/* The kind of the kept exception for JavaScript (js/src/pyodide/host.ts has the same
 * numbers). */
DLW_EXPORT(dlw_bridge_error_kind)
int32_t dlw_bridge_error_kind(void) {
  if (pending == NULL) return NONE;
  const struct {
    PyObject *class;
    int32_t kind;
  } kinds[] = {
      {dlw_ReleasedError, RELEASED},      {dlw_CopyError, COPY_NEEDED},
      {dlw_DeviceLostError, DEVICE_LOST}, {PyExc_BufferError, UNSUPPORTED},
      {PyExc_TypeError, UNSUPPORTED},     {PyExc_MemoryError, NO_MEMORY},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (PyErr_GivenExceptionMatches(pending, kinds[i].class)) return kinds[i].kind;
  }
  return OTHER;
}

/* str(exception), NUL-terminated UTF-8, valid until the next call of this function. */
DLW_EXPORT(dlw_bridge_error_text)
const char *dlw_bridge_error_text(void) {
  PyObject *told =
      Py_XNewRef(pending); /* its __str__ may call any of these functions */
  dlw_set(&pending_text, told != NULL ? PyObject_Str(told) : NULL);
  Py_XDECREF(told);
  const char *text =
      pending_text != NULL ? PyUnicode_AsUTF8AndSize(pending_text, NULL) : NULL;
  PyErr_Clear();
  return text != NULL ? text : "";
}

PyObject *dlw_bridge_raise_pending(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(unused)) {
  dlw_set(&pending_text, NULL);
  if (pending == NULL) Py_RETURN_NONE;
  PyObject *raised = pending;
  pending = NULL;
  PyErr_SetRaisedException(raised);
  return NULL;
}

/* --- arguments that do not fit into 32 bits --------------------------------------- */

static struct {
  int64_t shape[DLW_MAX_NDIM];
  int64_t strides[DLW_MAX_NDIM];
  uint64_t byte_offset;
} scratch;

DLW_EXPORT(dlw_bridge_scratch)
void *dlw_bridge_scratch(void) { return &scratch; }

/* --- tensors ---------------------------------------------------------------------- */

/* What is asked of dlw_bridge_borrow (js/src/pyodide/heap.ts has the same bits). */
enum { WRITABLE = 1, IN_PLACE = 2, COPIED = 4 };

/* A hold on the memory of any object that shares some. */
DLW_EXPORT(dlw_bridge_borrow)
dlw_tensor *dlw_bridge_borrow(PyObject *obj, int32_t asked) {
  dlw_request request = {.copy = asked & IN_PLACE ? DLW_COPY_NO : DLW_COPY_IF_NEEDED,
                         .any_alignment = asked & COPIED};
  dlw_tensor *tensor = dlw_borrow(obj, &request);
  if (tensor != NULL && asked & WRITABLE && dlw_read_only(tensor)) {
    dlw_release_quietly(tensor);
    tensor = NULL;
    PyErr_SetString(PyExc_BufferError,
                    "the array is read-only and writable memory was asked for; copy it "
                    "first, for example with x.copy()");
  }
  return lend(tensor);
}

/* Fresh memory; its shape is in the scratch area. */
DLW_EXPORT(dlw_bridge_empty)
dlw_tensor *dlw_bridge_empty(int32_t ndim, uint32_t dtype, uint32_t flags) {
  return lend(dlw_empty(ndim, scratch.shape, dlw_dtype_unpack(dtype), flags));
}

/* A tensor over a GPU handle, of which it owns a reference; its shape, its strides if
 * it is `strided`, and its byte offset are in the scratch area. On failure the
 * reference stays the caller's. */
DLW_EXPORT(dlw_bridge_wrap)
dlw_tensor *dlw_bridge_wrap(uint32_t gpu, int32_t device_id, int32_t ndim,
                            uint32_t dtype, uint32_t flags, int32_t strided) {
  dlw_tensor *tensor = NULL;
  DLTensor described = {
      .device = {kDLWebGPU, device_id}, .ndim = ndim, .dtype = dlw_dtype_unpack(dtype)};
  dlw_status status = dlw_tensor_wrap_gpu(
      gpu, device_id, ndim, scratch.shape, strided ? scratch.strides : NULL,
      described.dtype, flags, scratch.byte_offset, &tensor);
  if (status != DLW_OK) return lend(dlw_raise(status, &described));
  void (*drop)(dlw_tensor *) = tensor->drop;
  tensor->drop = NULL;
  tensor = lend(tensor);
  if (tensor != NULL) tensor->drop = drop;
  return tensor;
}

/* One more hold. */
DLW_EXPORT(dlw_bridge_share)
dlw_tensor *dlw_bridge_share(uint32_t handle) {
  dlw_tensor *tensor = expect(handle);
  return lend(tensor != NULL ? dlw_share(tensor) : NULL);
}

/* A double from JavaScript as a position; -1 if it is not one. */
static int64_t to_position(double number) {
  return number >= 0 && number < 0x1p53 ? (int64_t)number : -1;
}

/* One more hold, which sees some of the elements: their shape and strides are in the
 * scratch area, `offset` is that of element 0 in elements. */
DLW_EXPORT(dlw_bridge_view)
dlw_tensor *dlw_bridge_view(uint32_t handle, int32_t ndim, double offset) {
  dlw_tensor *tensor = expect(handle), *view = NULL;
  if (tensor == NULL) return lend(NULL);
  int64_t from = offset < 0 ? -to_position(-offset) : to_position(offset);
  dlw_status status =
      dlw_tensor_view(tensor, ndim, scratch.shape, scratch.strides, from, &view);
  DLTensor wanted = {.ndim = ndim, .dtype = dlw_dl(tensor)->dtype};
  return lend(status == DLW_OK ? view : dlw_raise(status, &wanted));
}

/* A row-major copy in fresh memory. */
DLW_EXPORT(dlw_bridge_pack)
dlw_tensor *dlw_bridge_pack(uint32_t handle) {
  dlw_tensor *tensor = expect(handle);
  return lend(tensor != NULL ? dlw_copy(tensor) : NULL);
}

/* dlw_upload_chunk; the address comes back in the scratch area. */
DLW_EXPORT(dlw_bridge_chunk)
int32_t dlw_bridge_chunk(uint32_t handle, uint32_t dtype, double first) {
  dlw_tensor *tensor = expect(handle);
  int64_t count = 0;
  DLDataType wanted = dlw_dtype_unpack(dtype);
  size_t bytes;
  char *memory = tensor != NULL ? dlw_upload_scratch(tensor, wanted, &bytes) : NULL;
  if (memory != NULL) {
    count = dlw_upload_chunk(tensor, wanted, to_position(first), memory, bytes,
                             &scratch.shape[0]);
  }
  if (count == 0) lend(NULL);
  return (int32_t)count;
}

/* --- releasing -------------------------------------------------------------------- */

DLW_EXPORT(dlw_bridge_release)
int32_t dlw_bridge_release(uint32_t handle) {
  dlw_tensor *tensor = dlw_handle_take(handle);
  if (tensor == NULL) return -1;
  dlw_release_quietly(tensor);
  return 0;
}

/* The callback for GPU handles whose reference C has dropped. */
DLW_EXPORT(dlw_bridge_on_drop)
void dlw_bridge_on_drop(void (*callback)(uint32_t gpu)) { dlw_on_gpu_drop(callback); }

/* --- the same table, from Python -------------------------------------------------- */

PyObject *dlw_bridge_take(PyObject *Py_UNUSED(module), PyObject *arg) {
  unsigned long long handle = PyLong_AsUnsignedLongLong(arg);
  if (handle == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
  dlw_tensor *tensor = handle <= UINT32_MAX ? dlw_handle_take((uint32_t)handle) : NULL;
  if (tensor == NULL) raise_stale((uint32_t)handle);
  return dlw_tensor_object(tensor);
}

/* --- kernels ---------------------------------------------------------------------- */

/* Arrays of one element have a __float__, too, but are not numbers; NumPy's scalars
 * will have a __dlpack__ (numpy#32029), but no length. -1 with an exception. */
static int is_array(PyObject *arg) {
  int has_length = PyType_GetSlot(Py_TYPE(arg), Py_sq_length) != NULL ||
                   PyType_GetSlot(Py_TYPE(arg), Py_mp_length) != NULL;
  return has_length ? dlw_exports_dlpack(arg) : 0;
}

static PyObject *to_number(PyObject *arg, Py_ssize_t position) {
  int is = is_array(arg);
  if (is < 0) return NULL;
  if (!is) {
    double number = PyFloat_AsDouble(arg);
    if (number != -1 || !PyErr_Occurred()) return PyFloat_FromDouble(number);
    if (!dlw_is_refusal()) return NULL;
    PyErr_Clear();
  }
  if (dlw_check_mask(arg) < 0) return NULL;
  PyObject *name = PyType_GetQualName(Py_TYPE(arg));
  if (name == NULL) return NULL;
  int awaits = PyType_GetSlot(Py_TYPE(arg), Py_am_await) != NULL;
  PyErr_Format(PyExc_TypeError,
               "argument %zd has type %U%s; a kernel takes Tensors, for example "
               "dlpack_web.from_dlpack(x, device='webgpu'), and numbers",
               position, name, awaits ? " (await it)" : "");
  Py_DECREF(name);
  return NULL;
}

/* A WebGPU tensor, or a number as a float; NULL with an exception. `*device` is that of
 * the tensors so far, -1 before the first. */
static PyObject *to_argument(PyObject *arg, Py_ssize_t position, int64_t *device) {
  if (!dlw_is_tensor(arg)) return to_number(arg, position);
  dlw_tensor *tensor = dlw_tensor_of(arg);
  if (tensor == NULL) return NULL;
  DLDevice here = dlw_dl(tensor)->device;
  if (here.device_type != kDLWebGPU) {
    return PyErr_Format(PyExc_BufferError,
                        "argument %zd is on cpu; a kernel takes WebGPU tensors: use "
                        "t.to_device('webgpu')",
                        position);
  }
  if (*device >= 0 && *device != here.device_id) {
    return PyErr_Format(
        PyExc_BufferError,
        "the tensors of one kernel must share a device, not webgpu:%d and "
        "webgpu:%d",
        (int)*device, here.device_id);
  }
  *device = here.device_id;
  return Py_NewRef(arg);
}

#define MAX_ARGUMENTS 32

/* The number of arguments; -1 with an exception: too many. */
static Py_ssize_t count_arguments(PyObject *args) {
  Py_ssize_t count = PyTuple_Size(args);
  if (count <= MAX_ARGUMENTS) return count;
  return dlw_fail(PyExc_TypeError, "a kernel takes at most %d arguments, not %zd",
                  MAX_ARGUMENTS, count);
}

PyObject *dlw_bridge_arguments(PyObject *Py_UNUSED(module), PyObject *args) {
  Py_ssize_t count = count_arguments(args);
  if (count < 0) return NULL;
  int64_t device = -1;
  PyObject *values = PyTuple_New(count);
  for (Py_ssize_t i = 0; values != NULL && i < count; i++) {
    PyObject *value = to_argument(PyTuple_GetItem(args, i), i, &device);
    if (value == NULL || PyTuple_SetItem(values, i, value) < 0) Py_CLEAR(values);
  }
  if (values == NULL) return NULL;
  if (device >= 0) return Py_BuildValue("(LN)", (long long)device, values);
  Py_DECREF(values);
  return PyErr_Format(PyExc_TypeError, "a kernel needs at least one tensor");
}

/* A call of a kernel, as JavaScript reads it (js/src/pyodide/layout.ts has the same
 * order, kernels.ts the kinds): the number of Python's call, workgroups, arguments,
 * each with its kind, and the key of the call. A tensor is the address of its struct.
 * There is one, not on the stack: JavaScript may have used that up. */
enum { NUMBER, TENSOR };
enum { KEY = 40 };
static struct {
  double site, workgroups[3], count;
  struct {
    double kind, value;
  } arguments[MAX_ARGUMENTS];
  double key[KEY];
} call;

DLW_EXPORT(dlw_bridge_call)
void *dlw_bridge_call(void) { return &call; }

/* Describes the arguments in `call`, just before JavaScript reads it: no other code may
 * run in between. */
static int describe_arguments(PyObject *args) {
  Py_ssize_t count = count_arguments(args);
  if (count < 0) return -1;
  call.count = (double)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *arg = PyTuple_GetItem(args, i);
    double *kind = &call.arguments[i].kind, *value = &call.arguments[i].value;
    if (dlw_is_tensor(arg)) { /* A finalizer or a thread may have released it since. */
      dlw_tensor *tensor = dlw_tensor_of(arg);
      if (tensor == NULL) return -1;
      *kind = TENSOR;
      *value = (double)(size_t)tensor;
    } else if (PyFloat_Check(arg)) {
      *kind = NUMBER;
      *value = PyFloat_AsDouble(arg);
    } else {
      PyErr_BadArgument();
      return -1;
    }
  }
  return 0;
}

/* --- the key of a call ------------------------------------------------------------ */

/* The numbers in `call.key` are the same for the same call alone: how many there are,
 * how many arguments; of each the serial number of the tensor, or 0 for a number; the
 * options. JavaScript caches calls by them (js/src/webgpu/kernels/cache.ts). These
 * functions run no other code, and leave no exception. They return 0 for a call without
 * a key. */

static int add(int64_t number) {
  if (call.key[0] >= (double)KEY) return 0;
  call.key[(int)call.key[0]++] = (double)number;
  return 1;
}

static int add_int(PyObject *number) {
  int overflow = 0;
  if (!PyLong_CheckExact(number)) return 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
  const int64_t most = (int64_t)1 << 53;
  return !overflow && -most < value && value < most && add(value);
}

/* None, a bool, an int, or a tuple of ints, after its length, or another number. */
static int add_option(PyObject *option) {
  if (option == Py_None) return add(-1);
  if (PyBool_Check(option)) return add(option == Py_True ? -2 : -3);
  if (!PyTuple_CheckExact(option)) return add(-4) && add_int(option);
  Py_ssize_t length = PyTuple_Size(option);
  int added = add(length);
  for (Py_ssize_t i = 0; added && i < length; i++) {
    added = add_int(PyTuple_GetItem(option, i));
  }
  return added;
}

/* An argument as the user gave it. The value of a number comes to `arguments`. */
static int add_argument(PyObject *arg, double *value) {
  if (dlw_is_tensor(arg)) {
    dlw_tensor *tensor = dlw_tensor_of(arg);
    if (tensor == NULL) PyErr_Clear(); /* it was released */
    return tensor != NULL && add((int64_t)tensor->serial);
  }
  if (!PyFloat_CheckExact(arg) && !PyLong_CheckExact(arg)) return 0;
  *value = PyFloat_AsDouble(arg);
  if (*value != -1 || !PyErr_Occurred()) return add(0);
  PyErr_Clear(); /* an int beyond all floats */
  return 0;
}

/* Describes the key (args, *options). */
static int describe_key(PyObject *key) {
  PyObject *args = PyTuple_GetItem(key, 0);
  Py_ssize_t length = PyTuple_Size(args), count = PyTuple_Size(key);
  call.key[0] = 1;
  int added = length <= MAX_ARGUMENTS && add(length);
  for (Py_ssize_t i = 0; added && i < length; i++) {
    added = add_argument(PyTuple_GetItem(args, i), &call.arguments[i].value);
  }
  for (Py_ssize_t i = 1; added && i < count; i++) {
    added = add_option(PyTuple_GetItem(key, i));
  }
  if (!added) call.key[0] = 0;
  return added;
}

static int is_key(PyObject *key) {
  return PyTuple_Check(key) && PyTuple_Size(key) > 0 &&
         PyTuple_CheckExact(PyTuple_GetItem(key, 0));
}

/* Whether a kernel takes the arguments of a call as they are, and then only tensors. */
static int takes(PyObject *values, PyObject *args) {
  Py_ssize_t count = PyTuple_Size(values), length = PyTuple_Size(args);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *value = PyTuple_GetItem(values, i);
    PyObject *arg = i < length ? PyTuple_GetItem(args, i) : NULL;
    if (dlw_is_tensor(value) ? arg != NULL && arg != value
                             : arg == NULL || dlw_is_tensor(arg)) {
      return 0;
    }
  }
  return length <= count;
}

/* --- running kernels -------------------------------------------------------------- */

static int32_t (*run_kernel)(int32_t kernel, int32_t again);

/* The callback that runs the kernel with a number by `call`, and returns 1. It returns
 * 0 and keeps the error; or, for `again`, if it has not cached the call of that key, or
 * cannot say that it is still valid. Then it needs only the key, and the numbers among
 * the arguments. */
DLW_EXPORT(dlw_bridge_on_run)
void dlw_bridge_on_run(int32_t (*callback)(int32_t kernel, int32_t again)) {
  run_kernel = callback;
}

PyObject *dlw_bridge_run(PyObject *Py_UNUSED(module), PyObject *args) {
  double *groups = call.workgroups;
  int kernel;
  PyObject *values, *key;
  if (!PyArg_ParseTuple(args, "id(ddd)O!O!", &kernel, &call.site, &groups[0],
                        &groups[1], &groups[2], &PyTuple_Type, &values, &PyTuple_Type,
                        &key)) {
    return NULL;
  }
  if (run_kernel == NULL) {
    return PyErr_Format(PyExc_RuntimeError, "no JavaScript runs kernels");
  }
  call.key[0] = 0;
  if (is_key(key) && takes(values, PyTuple_GetItem(key, 0))) describe_key(key);
  if (describe_arguments(values) < 0) return NULL;
  return PyBool_FromLong(run_kernel(kernel, 0));
}

PyObject *dlw_bridge_again(PyObject *Py_UNUSED(module), PyObject *const *given,
                           Py_ssize_t count) {
  if (count != 2 || !is_key(given[1])) {
    return PyErr_Format(PyExc_TypeError, "_again(kernel, (args, *options))");
  }
  long kernel = PyLong_AsLong(given[0]);
  if (kernel == -1 && PyErr_Occurred()) return NULL;
  if (kernel == 0 || run_kernel == NULL || !describe_key(given[1])) Py_RETURN_FALSE;
  return PyBool_FromLong(run_kernel((int32_t)kernel, 1));
}

PyObject *dlw_bridge_pass(PyObject *Py_UNUSED(module), PyObject *args) {
  double *groups = call.workgroups;
  PyObject *function, *rest, *values;
  if (!PyArg_ParseTuple(args, "OO!d(ddd)O!", &function, &PyTuple_Type, &rest,
                        &call.site, &groups[0], &groups[1], &groups[2], &PyTuple_Type,
                        &values)) {
    return NULL;
  }
  if (describe_arguments(values) < 0) return NULL;
  return PyObject_CallObject(function, rest);
}

/* --- waits ------------------------------------------------------------------------ */

static uint32_t (*await_promise)(uint32_t number);

/* callback: waits for JavaScript's promise with a number, and returns a handle that
 * came with it, or another number that is not 0; 0 with the exception if it was
 * rejected. It suspends the C code that calls it, and is WebAssembly itself: a frame of
 * JavaScript could not be suspended. */
DLW_EXPORT(dlw_bridge_on_wait)
void dlw_bridge_on_wait(uint32_t (*callback)(uint32_t number)) {
  await_promise = callback;
}

PyObject *dlw_bridge_wait(PyObject *Py_UNUSED(module), PyObject *promise) {
  unsigned long number = PyLong_AsUnsignedLong(promise);
  if (number == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  if (await_promise == NULL) {
    return PyErr_Format(PyExc_RuntimeError, "there is no JavaScript to wait for");
  }
  uint32_t outcome = await_promise((uint32_t)number);
  if (outcome != 0) return PyLong_FromUnsignedLong(outcome);
  if (PyErr_Occurred()) return NULL;
  return PyErr_Format(PyExc_RuntimeError, "Python cannot wait here: that needs JSPI");
}
