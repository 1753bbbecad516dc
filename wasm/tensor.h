/* Managed tensors in linear memory: make, describe, share, release.
 *
 * Independent of Python. A tensor is one allocation: the DLPack struct, our header,
 * room for its maker (the payload), shape and strides.
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

/* DLPack's alignment for memory that a producer allocates. */
#define DLW_DATA_ALIGNMENT 256

typedef struct dlw_tensor {
  DLManagedTensorVersioned managed; /* first: its address is the tensor's */
  uint32_t handle;                  /* of the hold that JavaScript has; 0: none */
  _Atomic uint32_t holders;         /* root: managed tensors that hold this memory */
  struct dlw_tensor *root;
  /* Root: gives the memory back; may be NULL. Must not free the tensor itself. */
  void (*drop)(struct dlw_tensor *root);
  uint64_t serial;   /* no other tensor has or had it */
  int64_t *dims;     /* extents, then strides */
  uint16_t room;     /* axes with room after the payload */
  uint8_t unsettled; /* READ_ONLY is set because the producer did not say */
  uint8_t uncounted; /* by dlw_live_tensors: the library's own */
} dlw_tensor;

/* wasm32: JavaScript reads the handle at this offset (js/src/pyodide/layout.ts). */
_Static_assert(sizeof(void *) != 4 || offsetof(dlw_tensor, handle) == 64, "layout.ts");
_Static_assert(sizeof(dlw_tensor) % 8 == 0, "what follows is aligned");

static inline DLTensor *dlw_dl(dlw_tensor *tensor) {
  return &tensor->managed.dl_tensor;
}
static inline void *dlw_payload(dlw_tensor *tensor) { return tensor + 1; }
static inline int dlw_read_only(const dlw_tensor *tensor) {
  return (tensor->managed.flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
}

/* A new root, its device the CPU, for dlw_tensor_describe; `payload` bytes of room.
 * NULL when out of memory. The caller holds it: set `drop` only once there is memory to
 * give back. */
dlw_tensor *dlw_tensor_reserve(size_t payload);

/* One more holder of the same memory, with `payload` bytes of room. NULL: out of
 * memory. */
dlw_tensor *dlw_tensor_share(dlw_tensor *tensor, size_t payload);

/* One more holder, which sees some of the elements: from the one at `offset` (elements
 * from element 0) on, with that shape and those strides. DLW_OUTSIDE if that is not
 * within the tensor's span, or does not begin at a byte. */
dlw_status dlw_tensor_view(dlw_tensor *tensor, int32_t ndim, const int64_t *shape,
                           const int64_t *strides, int64_t offset, dlw_tensor **out);

/* One more holder, which sees the bytes of a row-major tensor as elements of another
 * dtype of whole bytes, with that shape. DLW_OUTSIDE if the tensor has fewer bytes, or
 * is strided; DLW_MISALIGNED in host memory only. */
dlw_status dlw_tensor_retype(dlw_tensor *tensor, int32_t ndim, const int64_t *shape,
                             DLDataType dtype, dlw_tensor **out);

/* One more holder, which sees host memory from its lowest element to its highest as
 * uint8, one axis. `*offset` is where element 0 is, in bytes. */
dlw_status dlw_tensor_raw(dlw_tensor *tensor, dlw_tensor **out, int64_t *offset);

/* Runs the deleter; NULL is ignored. The tensor must not be used afterwards. */
void dlw_tensor_release(dlw_tensor *tensor);

/* Fresh memory for `shape`, row-major, aligned to DLW_DATA_ALIGNMENT, not initialised.
 * Of `flags` only IS_SUBBYTE_TYPE_PADDED counts. */
dlw_status dlw_tensor_empty(int32_t ndim, const int64_t *shape, DLDataType dtype,
                            uint64_t flags, dlw_tensor **out);

/* A row-major copy in fresh memory; the source must be in the host's, at any
 * alignment. */
dlw_status dlw_tensor_copy(dlw_tensor *source, dlw_tensor **out);

/* Where a conversion stopped: the element's position in row-major order, and its bits.
 */
typedef struct {
  int64_t position;
  uint64_t bits;
} dlw_misfit;

/* A row-major copy with the elements as `dtype`, if dlw_converter_for supports it (or
 * it is the same). Of `flags` only IS_SUBBYTE_TYPE_PADDED counts: whether the copy is
 * padded. DLW_MISFIT fills `*misfit`. */
dlw_status dlw_tensor_convert(dlw_tensor *source, DLDataType dtype, uint64_t flags,
                              dlw_tensor **out, dlw_misfit *misfit);

/* A kDLWebGPU tensor over GPU handle `gpu`; `strides` may be NULL (row-major). On
 * success the tensor owns one reference of the handle and gives it back through the
 * callback below. */
dlw_status dlw_tensor_wrap_gpu(uint32_t gpu, int32_t device_id, int32_t ndim,
                               const int64_t *shape, const int64_t *strides,
                               DLDataType dtype, uint64_t flags, uint64_t byte_offset,
                               dlw_tensor **out);
/* The callback for GPU handles whose reference C has dropped; NULL: none. */
void dlw_on_gpu_drop(void (*callback)(uint32_t gpu));

/* Fills in the tensor, which has no ndim yet, from a foreign one: checks it, and copies
 * dtype, device, shape and strides, filled in if NULL. data is NULL without elements.
 * Keeps the lasting flags. */
dlw_status dlw_tensor_describe(dlw_tensor *tensor, const DLTensor *source,
                               uint64_t flags);

/* Managed tensors made here and not yet released, without the library's own. */
int64_t dlw_live_tensors(void);
void dlw_uncount(dlw_tensor *tensor);

#endif
