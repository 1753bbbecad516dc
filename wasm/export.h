/* Tensors for other consumers: DLPack capsules, buffers, and functions for consumers in
 * C. Independent of the Tensor type. */
#ifndef DLW_EXPORT_H_
#define DLW_EXPORT_H_

#include "errors.h"

typedef struct {
  int versioned;          /* 0: the legacy flavour, which has no flags */
  int copied;             /* whether this export made the copy */
  const DLDevice *device; /* the device to report for host memory; NULL: its own */
} dlw_capsule_options;

/* A capsule with a new hold on the tensor. The legacy flavour cannot say read-only and
 * raises for read-only memory. */
PyObject *dlw_export_capsule(dlw_tensor *tensor, dlw_capsule_options options);

/* Fills a Py_buffer over host memory as an ndarray would for these flags: the same
 * fields, the same refusals. view->internal has a hold of its own, which
 * dlw_release_buffer ends, so the view outlives release() of `exporter`. */
int dlw_export_buffer(dlw_tensor *tensor, PyObject *exporter, Py_buffer *view,
                      int flags);
void dlw_release_buffer(Py_buffer *view);

/* Functions of the type that the exchange functions need. */
typedef struct {
  dlw_tensor *(*tensor_of)(PyObject *object); /* borrowed, or NULL with an exception */
  PyObject *(*object_of)(dlw_tensor *tensor); /* takes the tensor over, always */
} dlw_exchange_type;

/* The capsule for the attribute __dlpack_c_exchange_api__ of that type. */
PyObject *dlw_exchange_api(dlw_exchange_type type);

#endif
