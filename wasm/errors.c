#include "errors.h"

static void *raise(PyObject *error) {
  if (error != NULL) PyErr_SetRaisedException(error);
  return NULL;
}

void *dlw_fail(const char *key, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *arguments = Py_VaBuildValue(format, values);
  va_end(values);
  if (arguments == NULL) return NULL;
  return raise(PyObject_CallFunction(dlw_core->fail, "sN", key, arguments));
}

void dlw_raise(dlw_status status, const DLTensor *tensor) {
  if (status == DLW_OK) return;
  if (status == DLW_NO_MEMORY) {
    PyErr_NoMemory();
    return;
  }
  DLDataType dtype = tensor->dtype;
  uintptr_t address = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
  raise(PyObject_CallFunction(dlw_core->fail, "i(iiiiiiK)", (int)status, tensor->ndim,
                              dtype.code, dtype.bits, dtype.lanes,
                              tensor->device.device_type, tensor->device.device_id,
                              (unsigned long long)address));
}

/* --- fresh memory, one more hold ------------------------------------------------- */

dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags) {
  DLTensor wanted = {.ndim = ndim, .dtype = dtype, .device = {kDLCPU, 0}};
  dlw_tensor *tensor = NULL;
  dlw_raise(dlw_tensor_empty(ndim, shape, dtype, flags, &tensor), &wanted);
  return tensor;
}

dlw_tensor *dlw_copy(dlw_tensor *source) {
  dlw_tensor *copy = NULL;
  dlw_raise(dlw_tensor_copy(source, &copy), dlw_dl(source));
  return copy;
}

dlw_tensor *dlw_share(dlw_tensor *source) {
  dlw_tensor *share = dlw_tensor_share(source, 0);
  if (share == NULL) PyErr_NoMemory();
  return share;
}
