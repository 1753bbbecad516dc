/* Elements on their way to a GPU: packed and converted in pieces. */
#ifndef DLW_UPLOAD_H_
#define DLW_UPLOAD_H_

#include "errors.h"

/* Packs and converts elements of host memory, from the one at `first` in row-major
 * order on; how many, or 0 with an exception. Where they are comes back in `*address`:
 * in the tensor where nothing is to be done, else in memory that the next call uses
 * again. -1 where they are no whole words, of which alone GPU buffers can be written:
 * pack all of them first. `first` is 0 or the sum of what earlier calls returned. */
int64_t dlw_upload_chunk(dlw_tensor *tensor, DLDataType dtype, int64_t first,
                         int64_t *address);

#endif
