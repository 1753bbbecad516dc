/* Arrow's arrays, by their capsules, as Tensors: the memory of one chunk without a
 * copy, read-only as Arrow's memory is; bitmaps (of bools, and of nulls) and several
 * chunks copied. Every struct is checked before its pointers are used. The content of
 * capsules is moved out before any code of the producer runs, and released once, also
 * on failure: an empty capsule is a BufferError. */
#ifndef DLW_ARROW_IMPORT_H_
#define DLW_ARROW_IMPORT_H_

#include "object.h"

/* _from_arrow_array(schema, array, column) -> (Tensor, which are valid). `array` is a
 * capsule of an ArrowArray or of an ArrowDeviceArray, and is moved; `column` a name, or
 * None. Which are valid: a Tensor of bool, false where an element of axis 0 is null, or
 * None if none is. */
PyObject *dlw_from_arrow_array(PyObject *module, PyObject *args);
/* _from_arrow_stream(stream, column) -> the same for all its arrays in order. The
 * stream is released. */
PyObject *dlw_from_arrow_stream(PyObject *module, PyObject *args);

#endif
