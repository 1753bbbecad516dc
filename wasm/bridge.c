/* The functions that JavaScript calls. On failure they return 0 and keep the Python
 * exception until JavaScript raises it. */
#include "bridge.h"

#include <string.h>

#include "handles.h"
#include "ndarray.h"
#include "upload.h"

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
 * will have a __dlpack__ (numpy#32029), but no length. */
static int is_array(PyObject *arg) {
  return PyObject_HasAttrString(arg, "__dlpack__") &&
         PyObject_HasAttrString((PyObject *)Py_TYPE(arg), "__len__");
}

static PyObject *to_number(PyObject *arg, Py_ssize_t position) {
  if (!is_array(arg)) {
    double number = PyFloat_AsDouble(arg);
    if (number != -1 || !PyErr_Occurred()) return PyFloat_FromDouble(number);
    if (!dlw_is_refusal()) return NULL;
    PyErr_Clear();
  }
  if (dlw_check_mask(arg) < 0) return NULL;
  PyObject *name = PyType_GetQualName(Py_TYPE(arg));
  if (name == NULL) return NULL;
  PyErr_Format(PyExc_TypeError,
               "argument %zd has type %U; a kernel takes Tensors, for example "
               "dlpack_web.from_dlpack(x, device='webgpu'), and numbers",
               position, name);
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
 * order, kernels.ts the kinds): the number of Python's call, workgroups, and arguments,
 * each with its kind. A tensor is the address of its struct. There is one, not on the
 * stack: JavaScript may have used that up. */
enum { NUMBER, TENSOR };
static struct {
  double site, workgroups[3], count;
  struct {
    double kind, value;
  } arguments[MAX_ARGUMENTS];
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

static int32_t (*run_kernel)(int32_t kernel, int32_t known);

/* The callback that runs the kernel with a number by `call`. It returns 0 and keeps the
 * error; 1: it ran; or another number, with which the same call can be run again. Then
 * it needs no more than that number as `known`, else 0, and the numbers in `call`; and
 * it returns 0 if it cannot say that the call is still valid. */
DLW_EXPORT(dlw_bridge_on_run)
void dlw_bridge_on_run(int32_t (*callback)(int32_t kernel, int32_t known)) {
  run_kernel = callback;
}

/* Calls that JavaScript can run again, by a hash of what was given. */
enum { KNOWN = 128, KNOWN_ARGUMENTS = 8 };
typedef struct {
  int32_t kernel, known; /* known 0: none */
  uint32_t count;
  double workgroups[3];              /* 0: the default */
  uint64_t serials[KNOWN_ARGUMENTS]; /* of tensors; 0: a number */
} known_call;
static known_call known_calls[KNOWN];

static known_call *place_of(const known_call *wanted) {
  uint64_t hash = (uint32_t)wanted->kernel;
  for (uint32_t i = 0; i < wanted->count; i++) hash = hash * 31 + wanted->serials[i];
  return &known_calls[hash % KNOWN];
}

static int is_same(const known_call *a, const known_call *b) {
  return a->kernel == b->kernel && a->count == b->count &&
         memcmp(a->workgroups, b->workgroups, sizeof a->workgroups) == 0 &&
         memcmp(a->serials, b->serials, a->count * sizeof a->serials[0]) == 0;
}

/* The call that is described; its count is 0 if it has too many arguments. */
static known_call described(int32_t kernel, PyObject *args) {
  known_call made = {.kernel = kernel};
  if (call.count > (double)KNOWN_ARGUMENTS) return made;
  made.count = (uint32_t)call.count;
  memcpy(made.workgroups, call.workgroups, sizeof made.workgroups);
  for (uint32_t i = 0; i < made.count; i++) {
    if (call.arguments[i].kind != (double)TENSOR) continue;
    made.serials[i] = dlw_tensor_of(PyTuple_GetItem(args, (Py_ssize_t)i))->serial;
  }
  return made;
}

PyObject *dlw_bridge_run(PyObject *Py_UNUSED(module), PyObject *args) {
  double *groups = call.workgroups;
  int kernel;
  PyObject *values;
  if (!PyArg_ParseTuple(args, "id(ddd)O!", &kernel, &call.site, &groups[0], &groups[1],
                        &groups[2], &PyTuple_Type, &values)) {
    return NULL;
  }
  if (run_kernel == NULL) {
    return PyErr_Format(PyExc_RuntimeError, "no JavaScript runs kernels");
  }
  if (describe_arguments(values) < 0) return NULL;
  known_call made = described(kernel, values);
  made.known = run_kernel(kernel, 0);
  if (made.known > 1 && made.count > 0) *place_of(&made) = made;
  return PyBool_FromLong(made.known != 0);
}

/* Workgroups as users give them: None, an int or a tuple of ints. */
static int read_workgroups(PyObject *given, double counts[3]) {
  counts[0] = counts[1] = counts[2] = 0;
  if (given == Py_None) return 1;
  counts[1] = counts[2] = 1;
  int is_tuple = PyTuple_CheckExact(given);
  Py_ssize_t length = is_tuple ? PyTuple_Size(given) : 1;
  for (Py_ssize_t i = 0; i < length; i++) {
    PyObject *count = is_tuple ? PyTuple_GetItem(given, i) : given;
    if (i > 2 || !PyLong_CheckExact(count)) return 0;
    counts[i] = PyLong_AsDouble(count);
  }
  if (!PyErr_Occurred()) return 1;
  PyErr_Clear();
  return 0;
}

PyObject *dlw_bridge_again(PyObject *Py_UNUSED(module), PyObject *const *given,
                           Py_ssize_t count) {
  if (count != 3 || !PyTuple_CheckExact(given[2])) {
    return PyErr_Format(PyExc_TypeError, "_again(kernel, workgroups, args)");
  }
  known_call wanted = {.kernel = (int32_t)PyLong_AsLong(given[0])};
  if (wanted.kernel == -1 && PyErr_Occurred()) return NULL;
  Py_ssize_t length = PyTuple_Size(given[2]);
  if (length > KNOWN_ARGUMENTS || !read_workgroups(given[1], wanted.workgroups)) {
    Py_RETURN_FALSE;
  }
  wanted.count = (uint32_t)length;
  for (Py_ssize_t i = 0; i < length; i++) {
    PyObject *arg = PyTuple_GetItem(given[2], i);
    if (dlw_is_tensor(arg)) {
      dlw_tensor *tensor = dlw_tensor_of(arg);
      if (tensor == NULL) return NULL;
      wanted.serials[i] = tensor->serial;
    } else if (PyFloat_CheckExact(arg) || PyLong_CheckExact(arg)) {
      call.arguments[i].value = PyFloat_AsDouble(arg);
    } else {
      Py_RETURN_FALSE;
    }
  }
  if (PyErr_Occurred()) { /* of a number, which the usual way refuses */
    PyErr_Clear();
    Py_RETURN_FALSE;
  }
  const known_call *found = place_of(&wanted);
  if (found->known == 0 || !is_same(found, &wanted)) Py_RETURN_FALSE;
  return PyBool_FromLong(run_kernel(wanted.kernel, found->known));
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
