/* The Tensor type: one hold on some memory, in Python; and how any object becomes a
 * hold, with a shortcut for Python's own Tensors, and Python's `explain` for better
 * errors, or another way, for rejected objects. */
#ifndef DLW_OBJECT_H_
#define DLW_OBJECT_H_

#include "import.h"

/* The C type, made once; new references. */
PyObject *dlw_tensor_type(PyObject *module);
/* The class of the tensors that we make, a subclass written in Python, and explain(x,
 * exception, borrowing) -> exception or Tensor. Not set until then. */
int dlw_bind_tensor(PyObject *tensor_class, PyObject *explain);

/* A Python Tensor that takes over the hold, also on failure. NULL gives NULL. */
PyObject *dlw_tensor_object(dlw_tensor *tensor);
int dlw_is_tensor(PyObject *obj);
/* The tensor of a Python Tensor; NULL with ReleasedError or TypeError. Borrowed. */
dlw_tensor *dlw_tensor_of(PyObject *obj);

/* A list of the Tensors that are not released. */
PyObject *dlw_tensors_alive(void);

/* A hold on any object that shares memory: a Tensor, a buffer, an object with
 * __dlpack__. */
dlw_tensor *dlw_borrow(PyObject *obj, const dlw_request *request);
/* The same for an exporter of buffers alone. */
dlw_tensor *dlw_borrow_buffer(PyObject *obj);
/* A hold on an object with __dlpack__, or a capsule. */
dlw_tensor *dlw_consume(PyObject *obj, const dlw_request *request);

/* Borrowed references by keyword, of those interned ones; 0, or -1 with TypeError. */
int dlw_parse_keywords(const char *function, PyObject *const *args, PyObject *names,
                       PyObject *const *keywords, int count, PyObject **given);
/* None, True or False (NULL: not given) to DLW_COPY_...; -1 with TypeError. */
int dlw_parse_copy(PyObject *value, int *copy);
/* The ints of a tuple; how many, -1 with an exception. Those beyond an int64 become its
 * limits: as extents they are too many, and as strides no other element is that far
 * away. At most DLW_MAX_NDIM are read: no function accepts more. */
int32_t dlw_parse_dims(PyObject *tuple, int64_t dims[DLW_MAX_NDIM]);

#endif
