/* Arrow's arrays, by their capsules, as Tensors: the memory of one chunk without a
 * copy, read-only as Arrow's memory is; bitmaps (of bools, and of nulls) and several
 * chunks copied. Every struct is checked before its pointers are used. The content of
 * capsules is moved out before any code of the producer runs, and released once, also
 * on failure: an empty capsule is a BufferError. */
#ifndef DLW_ARROW_IMPORT_H_
#define DLW_ARROW_IMPORT_H_

#include "object.h"

/* Python's functions; py/dlpack_web/_core.pyi describes them. */
PyObject *dlw_from_arrow_array(PyObject *module, PyObject *args);
PyObject *dlw_from_arrow_stream(PyObject *module, PyObject *args);

#endif
