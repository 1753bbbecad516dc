/* Exceptions: our classes, the messages for errors of tensor.h, and saving a pending
 * one while other code runs. Other errors are raised where they occur, by PyErr_Format.
 * Every message says what was given, what is supported, what to do. */
#ifndef DLW_ERRORS_H_
#define DLW_ERRORS_H_

#include <Python.h>

#include "tensor.h"

extern PyObject *dlw_CopyError;       /* (BufferError, ValueError) */
extern PyObject *dlw_DeviceLostError; /* (BufferError) */
extern PyObject *dlw_ReleasedError;   /* (BufferError) */
extern PyObject *dlw_KernelError;     /* (BufferError) */

/* Makes the classes and adds them to the module; once. */
int dlw_errors_init(PyObject *module);

/* Raises an exception, as PyErr_Format does, and is -1. */
#define dlw_fail(...) (PyErr_Format(__VA_ARGS__), -1)

/* Raises the exception for `status` and the described tensor. Returns NULL. */
void *dlw_raise(dlw_status status, const DLTensor *tensor);

/* The same for DLW_NO_CONVERSION and DLW_MISFIT. Returns NULL. */
void *dlw_raise_conversion(dlw_status status, DLDataType from, DLDataType to,
                           dlw_misfit misfit);

/* Whether the pending exception is a producer's error about its data, which may be
 * replaced by another: BufferError, TypeError or ValueError. KeyboardInterrupt,
 * MemoryError, CancelledError and all others must propagate. */
int dlw_is_refusal(void);

/* Whether the pending exception is none that a look-up may drop: MemoryError, or no
 * Exception, as KeyboardInterrupt. */
int dlw_is_fatal(void);

/* Hides the pending exception, if any, from code that must not see it, and restores it;
 * exceptions of that code are reported as unraisable. */
PyObject *dlw_put_aside(void);
void dlw_put_back(PyObject *kept);

/* dlw_tensor_release while an exception may be pending, which it keeps; NULL is
 * ignored. With the GIL. */
void dlw_release_quietly(dlw_tensor *tensor);

/* Tensors of tensor.h, or NULL with an exception. */
dlw_tensor *dlw_share(dlw_tensor *tensor);
dlw_tensor *dlw_copy(dlw_tensor *tensor);
dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags);

/* Replaces `*place` by `value` and drops the old reference last: code that runs then
 * must find the new one. */
static inline void dlw_set(PyObject **place, PyObject *value) {
  PyObject *old = *place;
  *place = value;
  Py_XDECREF(old);
}

#endif
