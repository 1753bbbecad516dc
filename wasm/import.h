/* Memory of other producers: buffers, DLPack capsules, __dlpack__, and the C exchange
 * functions of other types. Each function returns a new hold, or NULL with an
 * exception. Independent of the Tensor type. */
#ifndef DLW_IMPORT_H_
#define DLW_IMPORT_H_

#include "errors.h"

/* The names of DLPack's capsules, which say what they hold and whether it was taken. */
#define DLW_LEGACY "dltensor"
#define DLW_LEGACY_USED "used_dltensor"
#define DLW_VERSIONED "dltensor_versioned"
#define DLW_VERSIONED_USED "used_dltensor_versioned"
#define DLW_EXCHANGE_API "dlpack_exchange_api"

enum { DLW_COPY_NO = 0, DLW_COPY_YES = 1, DLW_COPY_IF_NEEDED = -1 };

/* The consumer's request. All zero except copy: on any device, aligned. */
typedef struct {
  const DLDevice *device; /* NULL: any */
  int copy;               /* DLW_COPY_YES: always fresh memory */
  int any_alignment;      /* misaligned memory is accepted: it will only be copied */
} dlw_request;

#define DLW_ANY ((dlw_request){NULL, DLW_COPY_IF_NEEDED, 0})

/* Described memory, with `payload` bytes of room for its owner, and no `drop` yet. */
dlw_tensor *dlw_import_described(size_t payload, const DLTensor *described,
                                 uint64_t flags, const dlw_request *request);
/* Borrows through the buffer protocol; the exporter stays alive and pinned. */
dlw_tensor *dlw_import_buffer(PyObject *obj, const dlw_request *request);
/* Takes over a capsule of either flavour, which is renamed once nothing can fail. */
dlw_tensor *dlw_import_capsule(PyObject *capsule, const dlw_request *request);
/* Takes over a managed tensor; not on failure, when it stays the caller's. */
dlw_tensor *dlw_import_versioned(DLManagedTensorVersioned *managed);
/* Calls obj.__dlpack__, or, for a request without options, the C functions of its type.
 */
dlw_tensor *dlw_import_dlpack(PyObject *obj, const dlw_request *request);
/* Any object that shares memory: a buffer exporter, an object with __dlpack__. */
dlw_tensor *dlw_import_any(PyObject *obj, const dlw_request *request);

/* Whether it has a __dlpack__; -1 with the exception of another error of the look-up.
 */
int dlw_exports_dlpack(PyObject *obj);

/* The object whose buffer the memory is, borrowed; NULL if it came another way. */
PyObject *dlw_exporter(dlw_tensor *tensor);
/* Whether the memory is that of a DLPack producer. */
int dlw_is_imported(dlw_tensor *tensor);

/* Once, before any of these. */
int dlw_import_init(void);

#endif
