/* NumPy's arrays, read in place: the contents of their buffer, without the format
 * string that NumPy writes, and consumers parse, for each buffer.
 *
 * The structs are NumPy's public ABI, the same for versions 1 and 2: those fields of
 * PyArrayObject_fields and PyArray_Descr that every extension reads. No header of
 * NumPy's is needed; tests/native/exchange/test_ndarray.py compares them with it. */
#ifndef DLW_NDARRAY_H_
#define DLW_NDARRAY_H_

#include "errors.h"

typedef struct {
  PyObject_HEAD;
  PyTypeObject *typeobj;
  char kind, type, byteorder, former_flags;
  int type_num;
} dlw_npy_descr;

typedef struct {
  PyObject_HEAD;
  char *data;
  int nd;
  Py_ssize_t *dimensions, *strides; /* strides in bytes */
  PyObject *base;
  dlw_npy_descr *descr;
  int flags;
} dlw_npy_array;

/* Whether it is an ndarray, no subclass's instance, of a NumPy with that ABI; -1 with
 * an exception that must propagate. */
int dlw_is_ndarray(PyObject *obj);

/* Describes such an array; shape and strides have room for DLW_MAX_NDIM. 0 if only its
 * buffer can describe or reject it: other dtypes, other byte orders, strides that are
 * not multiples of the item size. */
int dlw_describe_ndarray(PyObject *array, DLTensor *described, int64_t *shape,
                         int64_t *strides, uint64_t *flags);

/* Refuses a numpy.ma.MaskedArray with a masked element, whose memory does not say which
 * that is: -1 with BufferError. 0 for everything else, at once for an ndarray. */
int dlw_check_mask(PyObject *obj);

#endif
