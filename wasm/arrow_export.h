/* Tensors as Arrow's arrays: the same memory if the elements are contiguous, bool as
 * Arrow's bitmap. */
#ifndef DLW_ARROW_EXPORT_H_
#define DLW_ARROW_EXPORT_H_

#include "object.h"

/* Python's _to_arrow; py/dlpack_web/_core.pyi describes it. */
PyObject *dlw_to_arrow(PyObject *module, PyObject *args);

#endif
