/* The geometry of a DLTensor: its size, the memory that it spans, and checks of foreign
 * descriptions. Pure: nothing here allocates or uses Python. */
#ifndef DLW_LAYOUT_H_
#define DLW_LAYOUT_H_

#include "dtype.h"

/* Errors of a tensor; errors.c has the messages. */
typedef enum {
  DLW_OK = 0,
  DLW_NO_MEMORY,
  DLW_BAD_NDIM,      /* negative or above DLW_MAX_NDIM */
  DLW_BAD_SHAPE,     /* NULL or a negative extent */
  DLW_BAD_DTYPE,     /* not dlw_dtype_known, or padded vectors */
  DLW_BAD_DEVICE,    /* neither the host's memory nor kDLWebGPU */
  DLW_TOO_LARGE,     /* some element lies outside of the address space */
  DLW_NULL_DATA,     /* no memory although there are elements */
  DLW_MISALIGNED,    /* element 0 is not at a multiple of dlw_alignment(dtype) */
  DLW_OUTSIDE,       /* a view that reaches beyond what it is a view of */
  DLW_NO_CONVERSION, /* not dlw_converter_for these dtypes */
  DLW_MISFIT,        /* an integer that the dtype it was to become cannot hold */
} dlw_status;

/* Whether the CPU can read the memory: any kDLCPU device, and memory pinned or managed
 * by CUDA, ROCm and TPU runtimes. */
static inline int dlw_is_host(DLDevice device) {
  return device.device_type >= 0 && device.device_type < 32 &&
         (DLW_HOST_DEVICES >> device.device_type & 1);
}

/* The producer's flags that describe the memory. */
static inline uint64_t dlw_lasting_flags(DLDataType dtype, uint64_t flags) {
  uint64_t padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return flags & (DLPACK_FLAG_BITMASK_READ_ONLY | (dtype.bits < 8 ? padded : 0));
}

/* Where element 0 is, in host memory. Summed as integers: data may be NULL if
 * the tensor is empty, and need not be within the memory. */
static inline char *dlw_first(const DLTensor *tensor) {
  return (char *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
}
/* Whether that is a multiple of what the dtype needs. */
static inline int dlw_is_aligned(const DLTensor *tensor) {
  return (uintptr_t)dlw_first(tensor) % dlw_alignment(tensor->dtype) == 0;
}

/* Of tensors that dlw_check let pass: */
int64_t dlw_size(const DLTensor *tensor); /* elements */
uint64_t dlw_nbytes(const DLTensor *tensor,
                    uint64_t flags);           /* size * bits * lanes / 8, rounded up */
int dlw_is_contiguous(const DLTensor *tensor); /* row-major without gaps */

/* Row-major strides; an extent of 0 counts as 1, so no stride becomes 0. The shape has
 * been checked. */
void dlw_fill_row_major(DLTensor *tensor);

/* Elements of `shape` by way of `*size`, whose bytes are at most `limit`. Extents of 0
 * count as 1 for this, so row-major strides stay in range as well. */
dlw_status dlw_check_shape(int32_t ndim, const int64_t *shape, uint32_t element_bits,
                           int64_t limit, int64_t *size);

/* Whether such elements exist. Keeps in `*flags` the lasting ones. */
dlw_status dlw_check_dtype(DLDataType dtype, uint64_t *flags);

/* Where the lowest element starts and the highest one ends, in bytes from element 0, of
 * a tensor with elements. DLW_TOO_LARGE if it exceeds 64 bits. */
dlw_status dlw_byte_span(const DLTensor *tensor, uint32_t element_bits, int64_t *below,
                         int64_t *above);

/* Whether a foreign tensor may be used: everything is checked before any pointer except
 * shape and strides is dereferenced. strides may be NULL (row-major). Alignment is for
 * dlw_is_aligned. */
dlw_status dlw_check(const DLTensor *tensor, uint64_t flags);

#endif
