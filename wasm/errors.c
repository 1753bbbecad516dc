#include "errors.h"

#include <string.h>

PyObject *dlw_CopyError, *dlw_DeviceLostError, *dlw_ReleasedError, *dlw_KernelError;

/* --- classes ---------------------------------------------------------------------- */

int dlw_errors_init(PyObject *module) {
  PyObject *both = PyTuple_Pack(2, PyExc_BufferError, PyExc_ValueError);
  const struct {
    PyObject **class, *bases;
    const char *name, *doc;
  } CLASSES[] = {
      {&dlw_CopyError, both, "dlpack_web.CopyError",
       "A copy would be needed although copy=False was asked for.\n\n"
       ">>> dlw.empty(3).to_device('cpu', dtype='float16', copy=False)\n"
       "Traceback (most recent call last):\n"
       "...\n"
       "dlpack_web.CopyError: float32 to float16 makes a copy"},
      {&dlw_DeviceLostError, PyExc_BufferError, "dlpack_web.DeviceLostError",
       "The tensor's WebGPU device was lost.\n\n"
       ">>> device = await dlw.webgpu.request_device(label='mine')\n"
       ">>> t = dlw.empty(3, device=device)\n"
       ">>> device.gpu.destroy()\n"
       ">>> await t.to_host()  # doctest: +IGNORE_EXCEPTION_DETAIL\n"
       "Traceback (most recent call last):\n"
       "...\n"
       "dlpack_web.DeviceLostError: the device was lost"},
      {&dlw_KernelError, PyExc_BufferError, "dlpack_web.KernelError",
       "A kernel does not compile, or the GPU refused to run it.\n\n"
       "label: the kernel's; line: of its WGSL, or None; filename and lineno: of "
       "the call.\n\n"
       ">>> device = await dlw.webgpu.request_device()\n"
       ">>> kernel = dlw.webgpu.Kernel('fn main() {}', label='nothing')\n"
       ">>> try:\n"
       "...     await kernel.ready(device)\n"
       "... except dlw.KernelError as error:\n"
       "...     print(error.label)\n"
       "nothing"},
      {&dlw_ReleasedError, PyExc_BufferError, "dlpack_web.ReleasedError",
       "The tensor was released.\n\n"
       ">>> t = dlw.empty(3)\n"
       ">>> t.release()\n"
       ">>> t.shape\n"
       "Traceback (most recent call last):\n"
       "...\n"
       "dlpack_web.ReleasedError: this Tensor was released; make a new one "
       "from the array it shared"},
  };
  int failed = both == NULL;
  for (size_t i = 0; i < sizeof CLASSES / sizeof CLASSES[0] && !failed; i++) {
    PyObject **class = CLASSES[i].class;
    const char *name = CLASSES[i].name;
    if (*class == NULL) {
      *class = PyErr_NewExceptionWithDoc(name, CLASSES[i].doc, CLASSES[i].bases, NULL);
    }
    failed = *class == NULL ||
             PyModule_AddObjectRef(module, strchr(name, '.') + 1, *class) < 0;
  }
  Py_XDECREF(both);
  return failed ? -1 : 0;
}

/* --- messages for errors of tensors ----------------------------------------------- */

static void *raise_dtype(DLDataType dtype) {
  char name[DLW_DTYPE_NAME];
  if (dlw_dtype_known(dtype)) {
    return PyErr_Format(PyExc_BufferError,
                        "unsupported dtype %s, padded: vectors of sub-byte elements "
                        "must be packed",
                        dlw_dtype_name(dtype, name));
  }
  return PyErr_Format(PyExc_BufferError,
                      "unsupported dtype %s: those of DLPack 1.3 are supported, and "
                      "vectors of them",
                      dlw_dtype_name(dtype, name));
}

/* DLPack's name for a kind of device. */
static const char *device_name(int32_t kind) {
  static const char NAMES[][16] = {
#define ROW(kind) [kind] = #kind,
      DLW_DEVICES(ROW)
#undef ROW
  };
  int named = kind >= 0 && kind < (int32_t)(sizeof NAMES / sizeof NAMES[0]);
  return named && NAMES[kind][0] != '\0' ? NAMES[kind] : "unknown";
}

void *dlw_raise(dlw_status status, const DLTensor *tensor) {
  switch (status) {
    case DLW_NO_MEMORY:
      return PyErr_NoMemory();
    case DLW_BAD_NDIM:
      return PyErr_Format(PyExc_BufferError,
                          "unsupported number of dimensions %d: 0 to %d are supported; "
                          "reshape the array first",
                          tensor->ndim, DLW_MAX_NDIM);
    case DLW_BAD_SHAPE:
      return PyErr_Format(PyExc_BufferError,
                          "invalid shape: it is missing or has a negative extent");
    case DLW_BAD_DTYPE:
      return raise_dtype(tensor->dtype);
    case DLW_BAD_DEVICE:
      return PyErr_Format(
          PyExc_BufferError,
          "unsupported device %s (type %d, id %d): memory of the CPU (types 1, 3, 11, "
          "13, "
          "20) and WebGPU's (15) are supported; move the data to one of them first",
          device_name(tensor->device.device_type), tensor->device.device_type,
          tensor->device.device_id);
    case DLW_TOO_LARGE:
      return PyErr_Format(PyExc_BufferError,
                          "shape, strides and byte_offset reach beyond the address "
                          "space of %d bits; split the array",
                          (int)(8 * sizeof(void *)));
    case DLW_NULL_DATA:
      return PyErr_Format(PyExc_BufferError,
                          "the data pointer is NULL although the tensor has elements");
    case DLW_MISALIGNED:
      return PyErr_Format(
          PyExc_BufferError,
          "data at 0x%llx is not aligned to %u bytes, as its dtype needs; pass "
          "copy=True, or copy it first, for example with x.copy()",
          (unsigned long long)(uintptr_t)dlw_first(tensor),
          (unsigned)dlw_alignment(tensor->dtype));
    case DLW_OUTSIDE:
      return PyErr_Format(
          PyExc_BufferError,
          "the view reaches beyond its tensor, or begins within a byte");
    case DLW_OK:
    case DLW_NO_CONVERSION: /* dlw_raise_conversion has their messages */
    case DLW_MISFIT:
      break;
  }
  return PyErr_Format(PyExc_SystemError, "unknown status %d", (int)status);
}

void *dlw_raise_conversion(dlw_status status, DLDataType from, DLDataType to,
                           dlw_misfit misfit) {
  char from_name[DLW_DTYPE_NAME], to_name[DLW_DTYPE_NAME];
  dlw_dtype_name(from, from_name);
  dlw_dtype_name(to, to_name);
  if (status == DLW_NO_CONVERSION) {
    return PyErr_Format(PyExc_BufferError,
                        "cannot convert %s to %s on the way: move the elements as they "
                        "are, without dtype, or convert the array first, for example "
                        "with x.astype()",
                        from_name, to_name);
  }
  PyObject *value = from.code == kDLInt ? PyLong_FromLongLong((long long)misfit.bits)
                                        : PyLong_FromUnsignedLongLong(misfit.bits);
  if (value == NULL) return NULL;
  PyErr_Format(PyExc_BufferError,
               "element %lld of the %s tensor, in row-major order, is %S, which %s "
               "cannot hold; move the elements as they are, without dtype",
               (long long)misfit.position, from_name, value, to_name);
  Py_DECREF(value);
  return NULL;
}

/* --- pending exceptions ----------------------------------------------------------- */

int dlw_is_refusal(void) {
  return PyErr_ExceptionMatches(PyExc_BufferError) ||
         PyErr_ExceptionMatches(PyExc_TypeError) ||
         PyErr_ExceptionMatches(PyExc_ValueError);
}

int dlw_is_fatal(void) {
  return !PyErr_ExceptionMatches(PyExc_Exception) ||
         PyErr_ExceptionMatches(PyExc_MemoryError);
}

PyObject *dlw_put_aside(void) { return PyErr_GetRaisedException(); }

void dlw_put_back(PyObject *kept) {
  if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
  if (kept != NULL) PyErr_SetRaisedException(kept);
}

void dlw_release_quietly(dlw_tensor *tensor) {
  if (tensor == NULL) return;
  PyObject *kept = dlw_put_aside();
  dlw_tensor_release(tensor);
  dlw_put_back(kept);
}

/* --- tensors, or exceptions ------------------------------------------------------- */

dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags) {
  DLTensor wanted = {.ndim = ndim, .dtype = dtype, .device = {kDLCPU, 0}};
  dlw_tensor *tensor;
  dlw_status status = dlw_tensor_empty(ndim, shape, dtype, flags, &tensor);
  return status == DLW_OK ? tensor : dlw_raise(status, &wanted);
}

dlw_tensor *dlw_copy(dlw_tensor *source) {
  if (!dlw_is_host(dlw_dl(source)->device)) {
    return (void *)PyErr_Format(PyExc_BufferError,
                                "copies are made of host memory only; of a WebGPU "
                                "tensor use await t.to_host()");
  }
  dlw_tensor *copy;
  dlw_status status = dlw_tensor_copy(source, &copy);
  return status == DLW_OK ? copy : dlw_raise(status, dlw_dl(source));
}

dlw_tensor *dlw_share(dlw_tensor *source) {
  dlw_tensor *share = dlw_tensor_share(source, 0);
  return share != NULL ? share : dlw_raise(DLW_NO_MEMORY, NULL);
}
