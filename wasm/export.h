/* Tensors for other consumers: DLPack capsules, and functions for consumers in C. */
#ifndef DLW_EXPORT_H_
#define DLW_EXPORT_H_

#include "errors.h"

/* A capsule with a new hold on the tensor; `copied` says that this export made the
 * copy. The legacy flavour cannot say read-only and is refused then. */
PyObject *dlw_export(dlw_tensor *tensor, int versioned, int copied);

/* What the exchange functions need of the type whose they are. */
typedef struct {
  dlw_tensor *(*tensor_of)(PyObject *object); /* borrowed, or NULL with an exception */
  PyObject *(*object_of)(dlw_tensor *tensor); /* takes the tensor over, always */
} dlw_exchange_type;

/* The capsule for the attribute __dlpack_c_exchange_api__ of that type. */
PyObject *dlw_exchange_api(dlw_exchange_type type);

#endif
