/* Exceptions for what is wrong, and the state that the parts that know Python share. */
#ifndef DLW_ERRORS_H_
#define DLW_ERRORS_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tensor.h"

typedef struct {
  PyObject *tensor_type; /* the class of the tensors that we make */
  PyObject *fail;        /* fail(key, arguments) -> exception */
  PyObject *kind;        /* kind(exception) -> int, for JavaScript */
  PyObject *explain;     /* explain(x, exception, borrowing) -> exception or Tensor */
  PyObject *place;       /* place(x, device, copy) -> Tensor on that device */
  PyObject *docs;        /* name -> docstring */
  PyObject *max_version; /* (1, 3) */
  PyObject *str_dlpack, *str_stream, *str_max_version, *str_dl_device, *str_copy;
  PyObject *str_device, *str_read_blocking, *str_exchange;
  PyObject *names_version; /* ("max_version",) */
  PyObject *names_all;     /* ("max_version", "dl_device", "copy") */
} dlw_state;

/* The one module instance. JavaScript calls us without a module at hand, and deleters
 * run anywhere, so the state is found here; the module refuses to be loaded a second
 * time. */
extern dlw_state *dlw_core;

/* Puts a new reference in place of an old one. */
static inline void dlw_set(PyObject **place, PyObject *value) {
  PyObject *old = *place;
  *place = value;
  Py_XDECREF(old);
}

/* Raises the error of that key with arguments as of Py_BuildValue, a tuple; the words
 * are in py/dlpack_web/_errors.py. NULL. */
void *dlw_fail(const char *key, const char *format, ...);
/* Raises what `status` means for a tensor described so; nothing for DLW_OK. */
void dlw_raise(dlw_status status, const DLTensor *tensor);
/* The pending exception, put aside while a deleter may run Python code. */
#define DLW_KEEP_EXCEPTION(statement)                 \
  do {                                                \
    PyObject *kept = PyErr_GetRaisedException();      \
    statement;                                        \
    if (kept != NULL) PyErr_SetRaisedException(kept); \
  } while (0)

/* What tensor.h makes, or NULL with an exception. */
dlw_tensor *dlw_share(dlw_tensor *tensor);
dlw_tensor *dlw_copy(dlw_tensor *tensor);
dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags);

#endif
