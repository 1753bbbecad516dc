/* Managed tensors in linear memory: make, describe, share, release.
 *
 * Nothing here knows Python. A tensor is one allocation: the DLPack struct, our header,
 * shape, strides and, for whoever made it, some room of its own (the payload).
 *
 * Memory is held, not owned: the first tensor over some memory is its *root* and knows
 * how to give it back; `dlw_tensor_share` adds a holder with a struct of its own. When
 * the last holder is released, the root's `drop` runs, once. Holders may be released in
 * any order and on any thread.
 */
#ifndef DLW_TENSOR_H_
#define DLW_TENSOR_H_

#include <stdatomic.h>

#include "layout.h"

#define DLW_DATA_ALIGNMENT \
  256 /* what DLPack asks of memory that a producer allocates */

typedef struct dlw_tensor {
  DLManagedTensorVersioned managed; /* first: its address is the tensor's */
  uint32_t handle;                  /* of the hold that JavaScript has; 0: none */
  _Atomic uint32_t holders; /* root: managed tensors that stand on this memory */
  struct dlw_tensor *root;
  /* Root: gives the memory back; may be NULL. Must not free the tensor itself. */
  void (*drop)(struct dlw_tensor *root);
  size_t payload; /* bytes from the start of the tensor to its payload */
  int64_t dims[]; /* ndim extents, ndim strides, then the payload */
} dlw_tensor;

/* wasm32: JavaScript reads the handle at this offset (js/src/layout.ts). */
_Static_assert(sizeof(void *) != 4 || offsetof(dlw_tensor, handle) == 64, "layout.ts");

static inline DLTensor *dlw_dl(dlw_tensor *tensor) {
  return &tensor->managed.dl_tensor;
}
static inline void *dlw_payload(dlw_tensor *tensor) {
  return (char *)tensor + tensor->payload;
}
static inline int dlw_read_only(const dlw_tensor *tensor) {
  return (tensor->managed.flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
}

/* A new root with room for ndim extents and `payload` bytes, its device the CPU, its
 * dtype, extents, strides and drop unset. NULL when memory is out.
 * The caller holds it: set `drop` only once there is something to give back. */
dlw_tensor *dlw_tensor_new(int32_t ndim, size_t payload);

/* One more holder of the same memory, with `payload` bytes of room. NULL: out of
 * memory.*/
dlw_tensor *dlw_tensor_share(dlw_tensor *tensor, size_t payload);

/* One more holder, which sees a CPU tensor's memory from its lowest element to its
 * highest as uint8, one axis. `*offset` is where element 0 is, in bytes. */
dlw_status dlw_tensor_raw(dlw_tensor *tensor, dlw_tensor **out, int64_t *offset);

/* Runs the deleter; NULL is ignored. The tensor must not be used afterwards. */
void dlw_tensor_release(dlw_tensor *tensor);

/* Fresh memory for `shape`, row-major, aligned to DLW_DATA_ALIGNMENT, not initialised.
 * Of `flags` only IS_SUBBYTE_TYPE_PADDED counts. */
dlw_status dlw_tensor_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                            uint64_t flags, dlw_tensor **out);

/* A row-major copy in fresh memory; the source must be on the CPU. */
dlw_status dlw_tensor_copy(dlw_tensor *source, dlw_tensor **out);

/* A kDLWebGPU tensor over GPU handle `gpu`, row-major. On success the tensor owns one
 * reference of the handle and gives it back through the callback below. */
dlw_status dlw_tensor_wrap_gpu(uint32_t gpu, int32_t device_id, int32_t ndim,
                               const int64_t *shape, DLDataType dtype, uint64_t flags,
                               uint64_t byte_offset, dlw_tensor **out);
/* Who is told that C dropped its reference of a GPU handle; NULL: nobody. */
void dlw_on_gpu_drop(void (*callback)(uint32_t gpu));

/* Copies dtype, device, shape and strides (filled in when NULL) into a tensor made by
 * dlw_tensor_new with the same ndim; data is NULL when there are no elements. Keeps
 * what lasts of the flags. */
void dlw_tensor_describe(dlw_tensor *tensor, const DLTensor *source, uint64_t flags);

uint64_t dlw_nbytes(dlw_tensor *tensor); /* size * bits * lanes / 8, rounded up */

/* Managed tensors made here and not yet released. */
int64_t dlw_live_tensors(void);

#endif
