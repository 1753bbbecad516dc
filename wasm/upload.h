/* Packs and converts elements in pieces, for uploads to a GPU. */
#ifndef DLW_UPLOAD_H_
#define DLW_UPLOAD_H_

#include "errors.h"

/* Packs and converts elements of host memory, from the one at `first` in row-major
 * order on; how many, or 0 with an exception. All but the last ones are whole words,
 * which GPU buffers require. `*address` gets their address: in the tensor if nothing
 * needs to be done, else in `scratch`. */
int64_t dlw_upload_chunk(dlw_tensor *tensor, DLDataType dtype, int64_t first,
                         char *scratch, size_t bytes, int64_t *address);

/* Memory that all uploads of the browser reuse: as large as the largest so far, up to
 * 4 MiB; NULL with an exception. */
char *dlw_upload_scratch(const dlw_tensor *tensor, DLDataType dtype, size_t *bytes);

#endif
