/* Packs and converts elements in pieces, for uploads to a GPU. */
#ifndef DLW_UPLOAD_H_
#define DLW_UPLOAD_H_

#include "errors.h"

/* Packs and converts elements of host memory, from the one at `first` in row-major
 * order on; how many, or 0 with an exception. `*address` gets their address: in the
 * tensor if nothing needs to be done, else in memory that the next call reuses. -1 if
 * they are not whole words, which GPU buffers require: pack all of them first. `first`
 * is 0 or the sum of what earlier calls returned. */
int64_t dlw_upload_chunk(dlw_tensor *tensor, DLDataType dtype, int64_t first,
                         int64_t *address);

#endif
