/* Tensors as Arrow's arrays: the same memory where the elements lie one after the
 * other, bool as the bitmap that Arrow has for it. */
#ifndef DLW_ARROW_EXPORT_H_
#define DLW_ARROW_EXPORT_H_

#include "object.h"

/* _to_arrow(Tensor, its validity, a Tensor of bool, or None, requested: a capsule of an
 * ArrowSchema, or None) -> (capsule of an ArrowSchema, capsule of an ArrowArray). Axes
 * behind the first are fixed-size lists. BufferError where another type is requested.
 */
PyObject *dlw_to_arrow(PyObject *module, PyObject *args);

#endif
