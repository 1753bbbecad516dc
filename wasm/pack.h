/* Strided memory to contiguous memory. Nothing here knows Python. */
#ifndef DLW_PACK_H_
#define DLW_PACK_H_

#include "dlpack.h"

/* Copies the elements of a checked CPU tensor to `target` in row-major order. `target`
 * has room for all of them and does not overlap the source. */
void dlw_pack(void *target, const DLTensor *source);

#endif
