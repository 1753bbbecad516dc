/* The DLPack 1.3 binary interface, described in our own words.
 *
 * Field names, order and values are those of the standard (dmlc/dlpack); a test
 * compares this file with the official header. Comments say who owns and who may use
 * what. Every struct here is shared with other libraries: never change a layout. */
#ifndef DLW_DLPACK_H_
#define DLW_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#include "generated.h" /* kinds of device and of element, flags */

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

typedef struct {
  uint32_t
      major; /* another major: only version, manager_ctx, deleter, flags are safe */
  uint32_t minor; /* a larger minor only adds enum values and flags */
} DLPackVersion;

/* The kinds are enums in the standard, and plain integers in our structs, so unknown
 * values stay well defined. */
typedef struct {
  int32_t device_type;
  int32_t device_id; /* 0 for the CPU; index of the registered GPUDevice for WebGPU */
} DLDevice;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data; /* CPU: an address. WebGPU: an opaque 32-bit handle, never an address */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;       /* ndim extents; may be NULL when ndim is 0 */
  int64_t *strides;     /* in elements; since 1.2 never NULL when ndim > 0 */
  uint64_t byte_offset; /* from data to element 0 */
} DLTensor;

/* The unversioned form, up to DLPack 0.8: cannot say that memory is read-only. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx; /* private to the producer */
  /* Called once by the last holder of the tensor, on any thread; may be NULL. */
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* Functions for consumers in C: type(obj).__dlpack_c_exchange_api__, since 1.3. All
 * return 0, or -1 with a Python exception set; none throws, synchronises or blocks. */

/* Fresh memory as `prototype` describes it: only dtype, ndim, shape and device are
 * read. Needs no GIL; failure is reported once through set_error(context, kind,
 * message) instead. */
typedef int (*DLPackManagedTensorAllocator)(
    DLTensor *prototype, DLManagedTensorVersioned **out, void *error_context,
    void (*set_error)(void *error_context, const char *kind, const char *message));
/* A new hold on the object's memory, for the caller to delete. */
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object,
                                                     DLManagedTensorVersioned **out);
/* A description that stays the object's, valid until control returns to Python. */
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);
/* The stream that work is queued on; NULL where there are no streams. */
typedef int (*DLPackCurrentWorkStream)(int32_t device_type, int32_t device_id,
                                       void **out_current_stream);
/* A new reference to an object that takes the tensor over; on failure it does not. */
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned *tensor,
                                                   void **out_py_object);

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader *prev_api; /* an older version's; NULL: none */
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  DLPackManagedTensorAllocator managed_tensor_allocator;
  DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
  DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
  DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync; /* may be NULL */
  DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#define DLW_LAYOUT(type, field, at32, at64)                                    \
  _Static_assert(offsetof(type, field) == (sizeof(void *) == 4 ? at32 : at64), \
                 #type "." #field " is not where DLPack puts it")
#define DLW_SIZE(type, at32, at64)                                    \
  _Static_assert(sizeof(type) == (sizeof(void *) == 4 ? at32 : at64), \
                 #type " has not the size that DLPack gives it")

_Static_assert(sizeof(DLPackVersion) == 8, "DLPackVersion");
_Static_assert(sizeof(DLDevice) == 8, "DLDevice");
_Static_assert(sizeof(DLDataType) == 4, "DLDataType");
DLW_LAYOUT(DLTensor, data, 0, 0);
DLW_LAYOUT(DLTensor, device, 4, 8);
DLW_LAYOUT(DLTensor, ndim, 12, 16);
DLW_LAYOUT(DLTensor, dtype, 16, 20);
DLW_LAYOUT(DLTensor, shape, 20, 24);
DLW_LAYOUT(DLTensor, strides, 24, 32);
DLW_LAYOUT(DLTensor, byte_offset, 32, 40);
DLW_SIZE(DLTensor, 40, 48);
DLW_LAYOUT(DLManagedTensor, manager_ctx, 40, 48);
DLW_LAYOUT(DLManagedTensor, deleter, 44, 56);
DLW_SIZE(DLManagedTensor, 48, 64);
DLW_LAYOUT(DLManagedTensorVersioned, manager_ctx, 8, 8);
DLW_LAYOUT(DLManagedTensorVersioned, deleter, 12, 16);
DLW_LAYOUT(DLManagedTensorVersioned, flags, 16, 24);
DLW_LAYOUT(DLManagedTensorVersioned, dl_tensor, 24, 32);
DLW_SIZE(DLManagedTensorVersioned, 64, 80);
DLW_LAYOUT(DLPackExchangeAPI, managed_tensor_allocator, 12, 16);
DLW_SIZE(DLPackExchangeAPI, 32, 56);

#endif
