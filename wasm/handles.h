/* The holds that JavaScript has. It never sees a bare pointer that it could release
 * twice: it has handles, a slot and a generation, and stale or forged handles are
 * rejected. Independent of Python.
 *
 * Slots are used in turn, the one that has been free longest first, from at least
 * DLW_FREE_SLOTS free ones. A slot's generation has 12 bits, so a stale handle is
 * rejected for at least DLW_FREE_SLOTS * 4096 = 2^20 further handles. */
#ifndef DLW_HANDLES_H_
#define DLW_HANDLES_H_

#include "tensor.h"

#define DLW_FREE_SLOTS 256
#define DLW_MAX_SLOTS (1u << 20)

/* Enters a hold into the table and its handle, which is not 0, into the tensor. 0, or
 * -1 when out of memory or DLW_MAX_SLOTS - DLW_FREE_SLOTS are in use; then nothing has
 * changed. */
int dlw_handle_add(dlw_tensor *tensor);
/* The tensor of a handle, which stays in the table; NULL for a stale one. */
dlw_tensor *dlw_handle_get(uint32_t handle);
/* Takes the hold out of the table; NULL when the handle is stale. */
dlw_tensor *dlw_handle_take(uint32_t handle);

#endif
