/* Memory of other producers: buffers, DLPack capsules, __dlpack__, and the C exchange
 * functions of other types. Each function returns a new hold, or NULL with an
 * exception. Nothing here knows the Tensor type. */
#ifndef DLW_IMPORT_H_
#define DLW_IMPORT_H_

#include "errors.h"

enum { DLW_COPY_NO = 0, DLW_COPY_YES = 1, DLW_COPY_IF_NEEDED = -1 };

/* What the consumer wants. All zero but copy: wherever it is, aligned. */
typedef struct {
  const DLDevice *device; /* NULL: wherever the elements are */
  int copy;               /* DLW_COPY_YES: fresh memory, whatever the producer does */
  int any_alignment;      /* misaligned memory will do: it is only going to be copied */
} dlw_request;

#define DLW_ANY ((dlw_request){NULL, DLW_COPY_IF_NEEDED, 0})

/* Borrows through the buffer protocol; the exporter stays alive and pinned. */
dlw_tensor *dlw_import_buffer(PyObject *obj, const dlw_request *request);
/* Takes over a capsule of either flavour, which is renamed once nothing can fail. */
dlw_tensor *dlw_import_capsule(PyObject *capsule, const dlw_request *request);
/* Takes over a managed tensor; not on failure, when it stays the caller's. */
dlw_tensor *dlw_import_versioned(DLManagedTensorVersioned *managed);
/* Calls obj.__dlpack__, or, where nothing but the tensor is asked for, the C functions
 * that its type has instead. */
dlw_tensor *dlw_import_dlpack(PyObject *obj, const dlw_request *request);
/* Whatever shares memory: a buffer exporter, an object with __dlpack__. */
dlw_tensor *dlw_import_any(PyObject *obj, const dlw_request *request);

/* The object whose buffer the memory is, borrowed; NULL where it came another way. */
PyObject *dlw_exporter(dlw_tensor *tensor);
/* Whether the memory is that of a DLPack producer. */
int dlw_is_imported(dlw_tensor *tensor);

/* Once, before any of these. */
int dlw_import_init(void);

#endif
