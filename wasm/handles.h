/* The holds that JavaScript has. It never sees a bare pointer that it could give back
 * twice: it has handles, a slot and a generation, and a handle that was released or
 * made up is refused. Nothing here knows Python. */
#ifndef DLW_HANDLES_H_
#define DLW_HANDLES_H_

#include "tensor.h"

/* Enters a hold into the table and its handle into the tensor; 0, or -1 when the table
 * is full or memory is out. */
int dlw_handle_add(dlw_tensor *tensor);
/* The tensor of a handle, which stays in the table; NULL for a stale one. */
dlw_tensor *dlw_handle_get(uint32_t handle);
/* Takes the hold out of the table; NULL when the handle is stale. */
dlw_tensor *dlw_handle_take(uint32_t handle);

#endif
