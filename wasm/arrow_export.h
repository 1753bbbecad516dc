/* Tensors as Arrow's arrays: the same memory if the elements are contiguous, bool as
 * Arrow's bitmap. */
#ifndef DLW_ARROW_EXPORT_H_
#define DLW_ARROW_EXPORT_H_

#include "object.h"

/* _to_arrow(Tensor, valid: a Tensor of bool, false where an element of axis 0 is null,
 * or None, requested: a capsule of an ArrowSchema, or None) -> (capsule of an
 * ArrowSchema, capsule of an ArrowArray). Axes after the first are fixed-size lists.
 * BufferError if another type is requested. */
PyObject *dlw_to_arrow(PyObject *module, PyObject *args);

#endif
