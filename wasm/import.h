/* Memory of other producers. Each function returns a new hold, or NULL with an
 * exception; none knows the Tensor type. */
#ifndef DLW_IMPORT_H_
#define DLW_IMPORT_H_

#include "errors.h"

enum { DLW_COPY_NO = 0, DLW_COPY_YES = 1, DLW_COPY_IF_NEEDED = -1 };

/* Borrows through the buffer protocol; the exporter stays alive and pinned. */
dlw_tensor *dlw_import_buffer(PyObject *obj);
/* Takes over a capsule of either flavour, which is renamed once nothing can fail. */
dlw_tensor *dlw_import_capsule(PyObject *capsule);
/* Takes over a managed tensor; not on failure, when it stays the caller's. */
dlw_tensor *dlw_import_versioned(DLManagedTensorVersioned *managed);
/* Calls obj.__dlpack__, or, where nothing but the tensor is asked for, the C functions
 * that its type has instead. `device` NULL: wherever it is. With DLW_COPY_YES the
 * memory is fresh even if the producer ignores the request. */
dlw_tensor *dlw_import_dlpack(PyObject *obj, const DLDevice *device, int copy);
/* Whatever shares memory: a buffer exporter, an object with __dlpack__. */
dlw_tensor *dlw_import_any(PyObject *obj);
/* The object whose buffer the memory is; True for a DLPack producer's, else False. */
PyObject *dlw_owner(dlw_tensor *tensor);

#endif
