/* The geometry of a DLTensor: its size, the memory that it spans, whether what somebody
 * else says of it can be. Pure: nothing here allocates, and nothing knows Python. */
#ifndef DLW_LAYOUT_H_
#define DLW_LAYOUT_H_

#include "dtype.h"

#define DLW_MAX_NDIM 64 /* what NumPy has */
/* The words for these are in py/dlpack_web/_explain.py, by number. */
typedef enum {
  DLW_OK = 0,
  DLW_NO_MEMORY,
  DLW_BAD_NDIM,   /* negative or above DLW_MAX_NDIM */
  DLW_BAD_SHAPE,  /* NULL or a negative extent */
  DLW_BAD_DTYPE,  /* not dlw_dtype_known, or padded vectors */
  DLW_BAD_DEVICE, /* neither kDLCPU nor kDLWebGPU */
  DLW_TOO_LARGE,  /* some element lies outside of the address space */
  DLW_NULL_DATA,  /* no memory although there are elements */
  DLW_MISALIGNED, /* element 0 is not at a multiple of dlw_alignment(dtype) */
} dlw_status;

/* The flags that say something about the memory, of those that a producer gave. */
static inline uint64_t dlw_lasting_flags(DLDataType dtype, uint64_t flags) {
  uint64_t padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return flags &
         (DLPACK_FLAG_BITMASK_READ_ONLY | (dlw_is_sub_byte(dtype) ? padded : 0));
}

int64_t dlw_size(const DLTensor *tensor);      /* elements */
int dlw_is_contiguous(const DLTensor *tensor); /* row-major without gaps */
static inline char *dlw_first(const DLTensor *tensor) {
  return (char *)tensor->data + (size_t)tensor->byte_offset;
}

/* Row-major strides; an extent of 0 counts as 1. The shape has been checked. */
void dlw_fill_row_major(DLTensor *tensor);

/* Elements of `shape` by way of `*size`, at most `limit` bytes. */
dlw_status dlw_check_shape(int32_t ndim, const int64_t *shape, uint32_t element_bits,
                           int64_t limit, int64_t *size);

/* Whether the dtype is one that may have these flags, of which those that last are
 * left. */
dlw_status dlw_check_dtype(DLDataType dtype, uint64_t *flags);

/* Where the first element starts and the last one ends, in bytes from element 0. */
dlw_status dlw_byte_span(const DLTensor *tensor, uint32_t element_bits, int64_t size,
                         int64_t *below, int64_t *above);

/* Whether a tensor described by somebody else may be used: everything is checked before
 * any of it is dereferenced but shape and strides. strides may be NULL (row-major). */
dlw_status dlw_check(const DLTensor *tensor, uint64_t flags);

#endif
