/* The Tensor type: what Python sees of one hold on some memory. */
#ifndef DLW_OBJECT_H_
#define DLW_OBJECT_H_

#include "import.h"

/* The Tensor type, made once by the module. */
PyObject *dlw_tensor_type(PyObject *module);
/* A Python Tensor that takes over the hold, also on failure. NULL gives NULL. */
PyObject *dlw_tensor_object(dlw_tensor *tensor);
/* The tensor of a Python Tensor; NULL with ReleasedError or TypeError. Borrowed. */
dlw_tensor *dlw_tensor_of(PyObject *obj);
int dlw_is_tensor(PyObject *obj);
/* A hold on whatever shares memory: a Tensor, or what dlw_import_any takes. */
dlw_tensor *dlw_borrow(PyObject *obj);
/* What Python's `explain` makes of the pending exception about `obj`: a hold on the
 * elements after all, or NULL with the exception annotated, or replaced by ours when we
 * were borrowing (a producer's own exceptions propagate unchanged). */
dlw_tensor *dlw_explain(PyObject *obj, int borrowing);

/* Whether a keyword is the expected one: interned, or equal to `text`. */
int dlw_is_name(PyObject *name, PyObject *expected, const char *text);
/* None, True or False (NULL: not given) to DLW_COPY_...; -1 with TypeError. */
int dlw_parse_copy(PyObject *value, int *copy);
/* Gives functions, and the Tensor's members, their docstrings out of a dict that lives
 * as long as the process. They are Python's because each byte of the core counts. */
void dlw_document(PyMethodDef *methods, PyObject *docs);
void dlw_document_tensor(PyObject *docs);

#endif
