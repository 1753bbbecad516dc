/* The references that JavaScript has. It never sees a bare pointer that it could
 * release twice: it has handles, which are refused once they are stale or if they are
 * forged. Independent of Python.
 *
 * js/src/webgpu/buffers/table.ts has the same policy for GPU buffers, and both are
 * tested with tests/handles/vectors.json. A handle is a slot (20 bits) and the slot's
 * generation (12 bits); slot 0 is never used, so 0 is not a handle. Of the free slots
 * the one that was freed first is used first, as soon as more than DLW_FREE_SLOTS are
 * free; until then a new slot is used. A slot that is freed gets the next generation,
 * and after 4095 again 0: slots are never retired, so handles never run out. 32 bits
 * cannot name more than 2^32 holders without repetition; between two uses of a slot at
 * least 257 handles are made, so a stale handle is refused for at least 4095 * 257 >
 * 2^20 further ones. */
#ifndef DLW_HANDLES_H_
#define DLW_HANDLES_H_

#include "tensor.h"

#ifndef DLW_SLOT_BITS /* tests have tiny tables */
#define DLW_SLOT_BITS 20
#define DLW_GENERATION_BITS 12
#define DLW_FREE_SLOTS 256
#endif

/* Enters a reference into the table and its handle, which is not 0, into the tensor. 0,
 * or -1 when out of memory or 2^20 - 257 are in use: then nothing has changed. */
int dlw_handle_add(dlw_tensor *tensor);
/* The tensor of a handle, which stays in the table; NULL for a stale one. */
dlw_tensor *dlw_handle_get(uint32_t handle);
/* Takes the reference out of the table; NULL when the handle is stale. */
dlw_tensor *dlw_handle_take(uint32_t handle);

#endif
