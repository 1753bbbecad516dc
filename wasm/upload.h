/* Elements on their way to a GPU: packed and converted in pieces. */
#ifndef DLW_UPLOAD_H_
#define DLW_UPLOAD_H_

#include "errors.h"

/* Packs and converts elements from position `first` on; how many, 0 with an exception.
 * Where they are comes back in `*address`. -1 where they are no whole words, of which
 * alone GPU buffers can be written: pack all of them first. */
int64_t dlw_upload_chunk(const DLTensor *source, DLDataType dtype, int64_t first,
                         int64_t *address);

#endif
