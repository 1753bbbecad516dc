/* The functions that JavaScript calls directly. Failing ones return 0 and keep the
 * Python exception until JavaScript has it raised. */
#include "bridge.h"

#include "handles.h"
#include "upload.h"

#ifdef __EMSCRIPTEN__
#define EXPORTED(name) __attribute__((export_name(#name), used))
#else /* the same names, for tests through ctypes */
#define EXPORTED(name) __attribute__((visibility("default")))
#endif
#define BRIDGE(type, name) EXPORTED(dlw_bridge_##name) type dlw_bridge_##name

/* Hands the hold to JavaScript; on failure it is released and an exception is set. */
static dlw_tensor *lend(dlw_tensor *tensor) {
  if (tensor == NULL || dlw_handle_add(tensor) == 0) return tensor;
  dlw_tensor_release(tensor);
  PyErr_NoMemory();
  return NULL;
}

static void raise_stale(uint32_t handle) { dlw_fail("stale", "(I)", handle); }

/* --- errors ---------------------------------------------------------------------- */

static PyObject *pending, *pending_text;

/* What a function returns to JavaScript; keeps the exception when there is no tensor.
 */
static dlw_tensor *result(dlw_tensor *tensor) {
  tensor = lend(tensor);
  if (tensor == NULL) {
    PyObject *raised = PyErr_GetRaisedException();
    dlw_set(&pending, raised);
  }
  return tensor;
}

/* 0 none, 1 other, 2 cannot be shared, 3 released, 4 copy needed, 5 device lost. */
BRIDGE(int32_t, error_kind)(void) {
  if (pending == NULL) return 0;
  PyObject *kind = PyObject_CallFunctionObjArgs(dlw_core->kind, pending, NULL);
  long number = kind != NULL ? PyLong_AsLong(kind) : -1;
  Py_XDECREF(kind);
  PyErr_Clear();
  return number > 0 ? (int32_t)number : 1;
}

/* str(exception), NUL-terminated UTF-8, valid until the next call of this function. */
BRIDGE(const char *, error_text)(void) {
  dlw_set(&pending_text, pending != NULL ? PyObject_Str(pending) : NULL);
  const char *text =
      pending_text != NULL ? PyUnicode_AsUTF8AndSize(pending_text, NULL) : NULL;
  PyErr_Clear();
  return text != NULL ? text : "";
}

PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  Py_CLEAR(pending_text);
  if (pending == NULL) Py_RETURN_NONE;
  PyObject *raised = pending;
  pending = NULL;
  PyErr_SetRaisedException(raised);
  return NULL;
}

/* --- arguments that do not fit into 32 bits -------------------------------------- */

static struct {
  int64_t shape[DLW_MAX_NDIM];
  uint64_t byte_offset;
} scratch;

BRIDGE(void *, scratch)(void) { return &scratch; }

/* --- tensors --------------------------------------------------------------------- */

/* A hold on the memory of any object that shares some. */
BRIDGE(dlw_tensor *, borrow)(PyObject *obj, int32_t writable) {
  dlw_tensor *tensor = dlw_borrow(obj);
  if (tensor != NULL && writable && dlw_read_only(tensor)) {
    dlw_tensor_release(tensor);
    tensor = NULL;
    dlw_fail("not_writable", "()");
  }
  return result(tensor);
}

BRIDGE(dlw_tensor *, empty)(int32_t ndim, uint32_t dtype, uint32_t flags) {
  return result(dlw_empty(ndim, scratch.shape, dlw_dtype_unpack(dtype), flags));
}

BRIDGE(dlw_tensor *, wrap)(uint32_t gpu, int32_t device_id, int32_t ndim,
                           uint32_t dtype, uint32_t flags) {
  dlw_tensor *tensor = NULL;
  DLTensor described = {
      .device = {kDLWebGPU, device_id}, .ndim = ndim, .dtype = dlw_dtype_unpack(dtype)};
  dlw_status status =
      dlw_tensor_wrap_gpu(gpu, device_id, ndim, scratch.shape, described.dtype, flags,
                          scratch.byte_offset, &tensor);
  if (status != DLW_OK) {
    dlw_raise(status, &described);
    return result(NULL);
  }
  /* Until nothing can fail any more, the GPU handle stays the caller's. */
  void (*drop)(dlw_tensor *) = tensor->drop;
  tensor->drop = NULL;
  tensor = result(tensor);
  if (tensor != NULL) tensor->drop = drop;
  return tensor;
}

/* The tensor of a handle, with the exception for a stale one. */
static dlw_tensor *expect(uint32_t handle) {
  dlw_tensor *tensor = dlw_handle_get(handle);
  if (tensor == NULL) raise_stale(handle);
  return tensor;
}

BRIDGE(dlw_tensor *, share)(uint32_t handle) {
  dlw_tensor *tensor = expect(handle);
  return result(tensor != NULL ? dlw_share(tensor) : NULL);
}

BRIDGE(dlw_tensor *, pack)(uint32_t handle) {
  dlw_tensor *tensor = expect(handle);
  return result(tensor != NULL ? dlw_copy(tensor) : NULL);
}

/* --- elements on their way to a GPU ---------------------------------------------- */

BRIDGE(int32_t, chunk)(uint32_t handle, uint32_t dtype, double first) {
  dlw_tensor *tensor = expect(handle);
  int64_t count = 0;
  if (tensor != NULL) {
    count = dlw_upload_chunk(dlw_dl(tensor), dlw_dtype_unpack(dtype), (int64_t)first,
                             &scratch.shape[0]);
  }
  if (count == 0) result(NULL);
  return (int32_t)count;
}

/* --- releasing ------------------------------------------------------------------- */

BRIDGE(int32_t, release)(uint32_t handle) {
  dlw_tensor *tensor = dlw_handle_take(handle);
  if (tensor == NULL) return -1;
  dlw_tensor_release(tensor);
  return 0;
}

BRIDGE(void, on_drop)(void (*callback)(uint32_t gpu)) { dlw_on_gpu_drop(callback); }

/* --- the same table, from Python ------------------------------------------------- */

PyObject *dlw_bridge_take(PyObject *module, PyObject *arg) {
  (void)module;
  unsigned long handle = PyLong_AsUnsignedLong(arg);
  if (handle == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  dlw_tensor *tensor = handle <= UINT32_MAX ? dlw_handle_take((uint32_t)handle) : NULL;
  if (tensor == NULL) raise_stale((uint32_t)handle);
  return dlw_tensor_object(tensor);
}
