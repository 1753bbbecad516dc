/* The types of Arrow's arrays as dtypes and axes: the letters of an ArrowSchema, and
 * its extension types for tensors (arrow.fixed_shape_tensor, arrow.bool8). */
#ifndef DLW_ARROW_TYPE_H_
#define DLW_ARROW_TYPE_H_

#include "arrow.h"
#include "errors.h"

/* The elements of an Arrow type. */
typedef struct {
  DLDataType dtype;
  int bitmap;                   /* bool: a bit each */
  int bool8;                    /* bool: a byte each, true where it is not 0 */
  int binary;                   /* the last axis is of fixed-size binary: no child */
  int64_t column;               /* which child of a struct; -1: it is none */
  int32_t lists;                /* levels of fixed-size lists */
  int64_t widths[DLW_MAX_NDIM]; /* of the lists */
  int32_t ndim;                 /* axes of one element */
  int64_t shape[DLW_MAX_NDIM];  /* from axis 1 on, as memory has them: row-major */
  int permuted;                 /* whether the axes have another order: */
  int32_t order[DLW_MAX_NDIM];  /* which of `shape` each of them is */
} arrow_type;

/* -1 with BufferError for a type without a dtype, or a malformed one. `column`: the
 * child of a struct, or NULL. axes_of: the function for arrow.fixed_shape_tensor
 * (Python's _arrow.py). */
int dlw_parse_arrow(const struct ArrowSchema *schema, const char *column,
                    PyObject *axes_of, arrow_type *type);

/* -1 with BufferError for a struct that cannot be a type. */
int dlw_check_arrow(const struct ArrowSchema *schema);

/* Whether it is an extension type; -1 with BufferError. */
int dlw_is_extension(const struct ArrowSchema *schema);

/* Raises BufferError for an invalid struct of a producer. Returns -1. */
int dlw_arrow_wrong(const char *what);

#endif
