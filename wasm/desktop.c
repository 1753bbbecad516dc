/* Functions for Python where it has the GPUBuffers itself
 * (py/dlpack_web/_backends/model). In the browser JavaScript has them (bridge.c). */
#include "functions.h"

#ifndef __EMSCRIPTEN__

#include "upload.h"

/* --- tensors over handles --------------------------------------------------------- */

PyObject *dlw_desktop_wrap(PyObject *Py_UNUSED(module), PyObject *args) {
  unsigned int gpu, dtype;
  int device_id, padded, read_only;
  unsigned long long byte_offset;
  PyObject *extents, *steps;
  int64_t shape[DLW_MAX_NDIM], strides[DLW_MAX_NDIM];
  if (!PyArg_ParseTuple(args, "IiO!OIppK", &gpu, &device_id, &PyTuple_Type, &extents,
                        &steps, &dtype, &padded, &read_only, &byte_offset)) {
    return NULL;
  }
  int32_t ndim = dlw_parse_dims(extents, shape);
  if (ndim < 0) return NULL;
  if (steps != Py_None &&
      (!PyTuple_Check(steps) || PyTuple_Size(steps) != PyTuple_Size(extents))) {
    return PyErr_Format(PyExc_TypeError, "shape and strides are tuples of one length");
  }
  if (steps != Py_None && dlw_parse_dims(steps, strides) < 0) return NULL;
  DLTensor wanted = {
      .device = {kDLWebGPU, device_id}, .ndim = ndim, .dtype = dlw_dtype_unpack(dtype)};
  uint64_t flags = (padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0) |
                   (read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
  dlw_tensor *tensor = NULL;
  dlw_status status = dlw_tensor_wrap_gpu(gpu, device_id, wanted.ndim, shape,
                                          steps != Py_None ? strides : NULL,
                                          wanted.dtype, flags, byte_offset, &tensor);
  if (status != DLW_OK) return dlw_raise(status, &wanted);
  /* Until the Tensor exists, the reference is the caller's. */
  void (*drop)(dlw_tensor *) = tensor->drop;
  tensor->drop = NULL;
  PyObject *object = dlw_tensor_object(tensor);
  if (object != NULL) tensor->drop = drop;
  return object;
}

PyObject *dlw_desktop_gpu(PyObject *Py_UNUSED(module), PyObject *obj) {
  dlw_tensor *tensor = dlw_tensor_of(obj);
  if (tensor == NULL) return NULL;
  DLTensor *dl = dlw_dl(tensor);
  if (dl->device.device_type == kDLWebGPU) return PyLong_FromVoidPtr(dl->data);
  return PyErr_Format(PyExc_BufferError,
                      "the tensor is on the CPU: upload it with to_device('webgpu')");
}

/* --- the end of handles ----------------------------------------------------------- */

static PyObject *dropped;

/* A deleter runs on any thread, with the GIL or without. */
static void tell_dropped(uint32_t gpu) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *kept = dlw_put_aside();
  PyObject *handle = PyLong_FromUnsignedLong(gpu);
  PyObject *done = NULL;
  if (handle != NULL) done = PyObject_CallFunctionObjArgs(dropped, handle, NULL);
  if (done == NULL && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    /* A deleter raises nothing: the interrupt comes again in the code that called it.
     */
    PyErr_Clear();
    if (handle != NULL) done = PyObject_CallFunctionObjArgs(dropped, handle, NULL);
    PyErr_SetInterrupt();
  }
  if (done == NULL) PyErr_WriteUnraisable(dropped);
  Py_XDECREF(done);
  Py_XDECREF(handle);
  dlw_put_back(kept);
  PyGILState_Release(state);
}

PyObject *dlw_desktop_on_drop(PyObject *Py_UNUSED(module), PyObject *function) {
  dlw_set(&dropped, Py_NewRef(function));
  dlw_on_gpu_drop(tell_dropped);
  Py_RETURN_NONE;
}

/* --- elements on their way -------------------------------------------------------- */

PyObject *dlw_desktop_chunk(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *obj;
  unsigned int packed;
  long long first;
  Py_buffer scratch;
  if (!PyArg_ParseTuple(args, "OILw*", &obj, &packed, &first, &scratch)) return NULL;
  dlw_tensor *tensor = dlw_tensor_of(obj);
  DLDataType dtype = dlw_dtype_unpack(packed);
  int64_t address = 0, count = 0;
  if (tensor != NULL) {
    count = dlw_upload_chunk(tensor, dtype, first, scratch.buf, (size_t)scratch.len,
                             &address);
  }
  PyBuffer_Release(&scratch);
  if (count == 0) return NULL;
  Py_ssize_t bytes = (Py_ssize_t)(count * dlw_itemsize(dtype));
  PyObject *memory =
      PyMemoryView_FromMemory((char *)(uintptr_t)address, bytes, PyBUF_READ);
  return memory != NULL ? Py_BuildValue("(LN)", (long long)count, memory) : NULL;
}

#endif
