/* What the parts that know Python share: module state, import, export, errors. */
#ifndef DLW_CORE_H_
#define DLW_CORE_H_

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

/* --- capsule.c: import. Each returns a new hold, or NULL with an exception. ------ */

enum { DLW_COPY_NO = 0, DLW_COPY_YES = 1, DLW_COPY_IF_NEEDED = -1 };

/* Borrows through the buffer protocol; the exporter stays alive and pinned. */
dlw_tensor *dlw_import_buffer(PyObject *obj);
/* Takes over a capsule of either flavour, which is renamed once nothing can fail. */
dlw_tensor *dlw_import_capsule(PyObject *capsule);
/* Takes over a managed tensor; not on failure, when it stays the caller's. */
dlw_tensor *dlw_import_versioned(DLManagedTensorVersioned *managed);
/* Calls obj.__dlpack__, or, where nothing but the tensor is asked for, the C functions
 * that its type has instead. `device` NULL: wherever it is. With DLW_COPY_YES the
 * memory is fresh even if the producer ignores the request. */
dlw_tensor *dlw_import_dlpack(PyObject *obj, const DLDevice *device, int copy);
/* Whatever shares memory: a Tensor, a buffer exporter, an object with __dlpack__. */
dlw_tensor *dlw_import_any(PyObject *obj);
/* The object whose buffer the memory is; True for a DLPack producer's, else False. */
PyObject *dlw_owner(dlw_tensor *tensor);
/* One more hold on the same memory. */
dlw_tensor *dlw_share(dlw_tensor *tensor);
/* A copy of a CPU tensor. */
dlw_tensor *dlw_copy(dlw_tensor *tensor);
/* Fresh memory. */
dlw_tensor *dlw_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                      uint64_t flags);

/* --- capsule.c: export ----------------------------------------------------------- */

/* A capsule with a new hold on the tensor; `copied` says that this export made the
 * copy. The legacy flavour cannot say read-only and is refused then. */
PyObject *dlw_export(dlw_tensor *tensor, int versioned, int copied);

/* --- capsule.c: errors; the words are in py/dlpack_web/_errors.py ---------------- */

/* Raises the error of that key with arguments as of Py_BuildValue, a tuple. NULL. */
void *dlw_fail(const char *key, const char *format, ...);
/* Raises what `status` means for a tensor described so; nothing for DLW_OK. */
void dlw_raise(dlw_status status, const DLTensor *tensor);
/* What Python's `explain` makes of the pending exception about `obj`: a hold on the
 * elements after all, or NULL with the exception annotated, or replaced by ours when we
 * were borrowing (a producer's own exceptions propagate unchanged). */
dlw_tensor *dlw_explain(PyObject *obj, int borrowing);
/* The pending exception, put aside while a deleter may run Python code. */
#define DLW_KEEP_EXCEPTION(statement)                 \
  do {                                                \
    PyObject *kept = PyErr_GetRaisedException();      \
    statement;                                        \
    if (kept != NULL) PyErr_SetRaisedException(kept); \
  } while (0)

/* --- exchange.c ------------------------------------------------------------------ */

/* The capsule that the Tensor type has as __dlpack_c_exchange_api__. */
PyObject *dlw_exchange_api(void);
/* Whether obj's type has such functions for us; then `*out` is a new hold on its
 * memory, or NULL with an exception. */
int dlw_import_exchange(PyObject *obj, dlw_tensor **out);

/* --- object.c -------------------------------------------------------------------- */

/* The Tensor type, made once by the module. */
PyObject *dlw_tensor_type(PyObject *module);
/* A Python Tensor that takes over the hold, also on failure. NULL gives NULL. */
PyObject *dlw_tensor_object(dlw_tensor *tensor);
/* The tensor of a Python Tensor; NULL with ReleasedError or TypeError. Borrowed. */
dlw_tensor *dlw_tensor_of(PyObject *obj);
int dlw_is_tensor(PyObject *obj);
/* Whether a keyword is the expected one: interned, or equal to `text`. */
int dlw_is_name(PyObject *name, PyObject *expected, const char *text);
/* Gives functions, and the Tensor's members, their docstrings out of a dict that lives
 * as long as the process. They are Python's because each byte of the core counts. */
void dlw_document(PyMethodDef *methods, PyObject *docs);
void dlw_document_tensor(PyObject *docs);
/* None, True or False (NULL: not given) to DLW_COPY_...; -1 with TypeError. */
int dlw_parse_copy(PyObject *value, int *copy);

/* --- bridge.c: what Python may do with the holds that JavaScript has ------------- */

PyObject *dlw_bridge_take(PyObject *module, PyObject *handle);
PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused);

#endif
