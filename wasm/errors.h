/* Exceptions: the classes of our own, the words for what tensor.h finds wrong, and how
 * to keep a pending one while other code runs. What is found wrong elsewhere is said
 * there, by PyErr_Format. Every message tells what was given, what is supported, what
 * to do. */
#ifndef DLW_ERRORS_H_
#define DLW_ERRORS_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tensor.h"

extern PyObject *dlw_CopyError;       /* (BufferError, ValueError) */
extern PyObject *dlw_DeviceLostError; /* (BufferError) */
extern PyObject *dlw_ReleasedError;   /* (BufferError) */
extern PyObject *dlw_KernelError;     /* (BufferError) */

/* Makes the classes and adds them to the module; once. */
int dlw_errors_init(PyObject *module);

/* Raises what `status` means for a tensor described so. Returns NULL. */
void *dlw_raise(dlw_status status, const DLTensor *tensor);

/* The same for DLW_NO_CONVERSION and DLW_MISFIT. Returns NULL. */
void *dlw_raise_conversion(dlw_status status, DLDataType from, DLDataType to,
                           dlw_misfit misfit);

/* Whether the pending exception is a producer's word about its data, which others may
 * be found for: BufferError, TypeError or ValueError. KeyboardInterrupt, MemoryError,
 * CancelledError and whatever else is no such thing; it has to come through. */
int dlw_is_refusal(void);

/* Takes the pending exception, if there is one, out of the way of code that must not
 * see it, and puts it back; what that code left pending is reported as unraisable. */
PyObject *dlw_put_aside(void);
void dlw_put_back(PyObject *kept);

/* dlw_tensor_release while an exception may be pending, which it keeps. With the GIL.
 */
void dlw_release_quietly(dlw_tensor *tensor);

/* What tensor.h makes, or NULL with an exception. */
dlw_tensor *dlw_share(dlw_tensor *tensor);
dlw_tensor *dlw_copy(dlw_tensor *tensor);
dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags);

/* `value` in the place of `*place`, whose reference is dropped last: what runs then
 * must find the new one. */
static inline void dlw_set(PyObject **place, PyObject *value) {
  PyObject *old = *place;
  *place = value;
  Py_XDECREF(old);
}

#endif
